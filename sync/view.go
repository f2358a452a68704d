package sync

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/board"
	"github.com/headwater-k8s/headwater/sync/deliverer"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Observer follows deliveries, to display them. Its method must not block.
type Observer interface {
	// DeliveryChanged reports that a recorded revision changed, or the content of a source.
	DeliveryChanged()
}

// noopObserver ignores every report.
type noopObserver struct{}

func (noopObserver) DeliveryChanged() {}

func orNoop(observer Observer) Observer {
	if observer == nil {
		return noopObserver{}
	}
	return observer
}

// View reports what the controller knows, from the caches and from what it remembers. It
// sends no request and changes nothing.
type View struct {
	// Board knows how every clone stands.
	*board.Board

	controller *controller
	deliveries *deliverer.Deliverer
	metrics    *cloneMetrics
}

func newView(c *controller, deliveries *deliverer.Deliverer) *View {
	return &View{c.board, c, deliveries, &cloneMetrics{c}}
}

// OnApproval calls approved when approvals of people may have changed.
func (v *View) OnApproval(approved func()) error {
	_, err := v.controller.Approvals.View.OnChange(func(informers.Change[*survey.StoredApprovals]) { approved() })
	return err
}

// OnRevision calls revised with the rule of each revision that there is and that changes,
// until stop is called.
func (v *View) OnRevision(revised func(rule string)) (stop func()) {
	subscription, err := v.controller.Revisions.OnChange(func(change informers.Change[*revisions.Stored]) { revised(change.Latest().Rule) })
	if err != nil { // the informer has stopped: this process ends
		return func() {}
	}
	return subscription.Cancel
}

// Emptied returns the ID of the plan.Lack of an emptied source of rule that waits for an
// approval; empty if none is known. recorded is true if a revision waits for it, and not each
// clone.
func (v *View) Emptied(rule string, ref object.Ref) (id string, recorded bool) {
	c := v.controller
	found, inForce := c.Live.Load().Named(rule)
	source, _ := c.Caches.Sources.Get(ref)
	if !inForce || source == nil {
		return "", false
	}
	current := c.Revisions.History(revisions.Key{Rule: rule, Source: ref}).Of(source.Content, source.Digests)
	return c.Reader.Emptied(found, source).ID, delivery.NotPassed(current)
}

// Histories returns the revisions of rule by source.
func (v *View) Histories(rule string) map[object.Ref]revisions.History {
	all := map[object.Ref]revisions.History{}
	if recorded := v.controller.Revisions; recorded.Any(rule) {
		for _, key := range recorded.KeysOf(rule) {
			all[key.Source] = recorded.History(key)
		}
	}
	return all
}

// Working reports whether this replica reconciles clones: it is the leader, and
// its caches are read.
func (v *View) Working() bool { return v.controller.working.Load() }

// Settled reports whether Working is true and every target was reconciled since: what
// this process remembers of failures is then complete.
func (v *View) Settled() bool { return v.Working() && v.controller.passed.Load() }

// Unread reports whether the sources or clones of a rule have not been read yet since this process
// began, so that the board does not know them.
func (v *View) Unread(base rules.Base) bool {
	_, isRead := v.controller.Caches.Sources.Of(base)
	return !isRead || v.Board.Unread(base.Source.Kind)
}

// AnyUnread is Unread for a rule that is not in force.
func (v *View) AnyUnread() bool { return slices.ContainsFunc(object.Kinds, v.Board.Unread) }

// MissingSource is survey.Reader.MissingSource.
func (v *View) MissingSource(base rules.Base) string { return v.controller.MissingSource(base) }

// Deliveries is survey.Reader.Deliveries.
func (v *View) Deliveries(rule *spec.Rule, most int) (states []survey.DeliveryState, more int) {
	return v.controller.Deliveries(rule, most)
}

// Sources returns the sources of base, by name.
func (v *View) Sources(base rules.Base) []survey.SourceState { return v.controller.SourceStates(base) }

// LatestPropagation is progress.Tracker.LatestPropagation.
func (v *View) LatestPropagation(rule string) (progress.Completed, bool) {
	return v.controller.progress.LatestPropagation(rule)
}

// DeliveryStates returns the deliveries of rule, by source; none if it has no stages.
func (v *View) DeliveryStates(rule string) []deliverer.State { return v.deliveries.States(rule) }
