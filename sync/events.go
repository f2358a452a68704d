package sync

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/text"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Reasons of Events, in addition to plan.Reason.
const (
	CloneFailed = "CloneFailed"
	Propagated  = "Propagated"
	// sourceMissing is about a rule whose source does not exist.
	sourceMissing  = "SourceMissing"
	approvedReason = "Approved"
	// cloneReverted is about a clone that somebody edited, and that has the source's content
	// again.
	cloneReverted = "CloneReverted"
	nameTaken     = "NameTaken"
)

// record reports the outcome of one reconcile to metrics, Events and log. A
// write that the end of ctx cancelled has no outcome.
func (c *controller) record(ctx context.Context, outcome progress.Outcome) {
	state, decision, rule, err := outcome.State, outcome.Decision, outcome.Rule, outcome.Err
	if err != nil && ctx.Err() != nil {
		return
	}
	c.metrics.countWrite(c.RuleLabel(rule), decision, err)
	arrivals := c.progress.Record(outcome, c.now())
	c.reportArrivals(arrivals)
	found := append(c.missing(state), losers(state)...)
	switch {
	case err != nil:
		found = append(found, condition{failure(state, rule, decision, err), revision(state)})
	case outcome.Undone != "":
		found = append(found, c.fight(state, decision, progress.AdmissionChanges, progress.AdmissionNote(rule, outcome.Undone)))
	case decision.Action == plan.Refuse || decision.Action == plan.Hold && decision.Reason != plan.MassRemoval: // emitRemovals reports that once for all clones
		c.debugClone("clone not written", state, rule, decision, zap.String("message", decision.Message))
		found = append(found, condition{refusal(state, decision), revision(state)})
	}
	if err == nil && decision.Writes() {
		c.logWrite(state, rule, decision)
	}
	c.raise(state.Target, found)
}

// condition is an Event about a condition, and the revision of the source that it is about;
// empty if it is about any.
type condition struct {
	events.Event

	revision string
}

// raise emits the Events that are due about these, which are all conditions of target.
func (c *controller) raise(target object.Ref, found []condition) {
	keys := make([]progress.EventKey, 0, len(found))
	for _, one := range found {
		keys = append(keys, c.emit(one.Event, one.revision))
	}
	c.progress.Raised(target, keys, c.now())
}

// logWrite logs a write, and emits an Event if it is a removal or somebody approved it.
func (c *controller) logWrite(state plan.State, rule string, decision plan.Decision) {
	if decision.Action == plan.Remove {
		c.reportRemoval(state, rule, decision)
	} else {
		c.debugClone("clone written", state, rule, decision)
	}
	if c.Empties(state) {
		c.emitApproved(rule, sourceReference(state), fmt.Sprintf("Headwater empties the clones of rule %q, like this source", rule))
	}
	if left := c.Approvals.Of(rule).Leftovers; left != nil && (decision.Reason == plan.Pruned || decision.Reason == plan.Released) {
		c.emitApproved(rule, c.ownReference(), left.Sentence(rule))
	}
}

// debugClone logs a decision about one clone. At another level than debug it costs
// nothing, because there is one for each clone of a changed source.
func (c *controller) debugClone(message string, state plan.State, rule string, decision plan.Decision, more ...zap.Field) {
	if entry := c.log.Check(zap.DebugLevel, message); entry != nil {
		entry.Write(append([]zap.Field{
			zap.String("rule", rule), zap.Stringer("clone", state.Target),
			zap.String("action", string(decision.Action)), zap.String("reason", string(decision.Reason)),
		}, more...)...)
	}
}

// endFirstPass logs the summary of the first pass over all clones.
func (c *controller) endFirstPass() {
	c.passed.Store(true)
	if sum, ok := c.progress.EndFirstPass(c.now()); ok {
		c.log.Info("first sync finished", zap.Int("clones", sum.Clones), zap.Int("namespaces", sum.Namespaces),
			zap.Int("written", sum.Written), zap.Int("failed", sum.Failed), zap.Duration("took", sum.Took.Round(time.Millisecond)))
	}
}

// ruleOf returns the name of the rule that caused the decision. A removal or
// release is caused by the rule that the clone's marks name, any other decision
// by the first candidate.
func ruleOf(state plan.State, decision plan.Decision) string {
	if len(state.Candidates) > 0 && decision.Action != plan.Remove && decision.Action != plan.Release && decision.Reason != plan.MassRemoval {
		return state.Candidates[0].Rule.Name
	}
	if state.Clone == nil {
		return ""
	}
	marks, _ := mark.Of(state.Clone)
	return marks.Rule
}

// failure is the Event about a failed write.
func failure(state plan.State, rule string, decision plan.Decision, err error) events.Event {
	return events.Event{
		Rule: rule, About: reference(state.Target), Related: sourceReference(state), Warning: true,
		Reason: CloneFailed, Action: string(decision.Action),
		Note:        fmt.Sprintf("rule %q: %v%s", rule, err, progress.Retrying),
		Annotations: map[string]string{progress.EventRule: rule, progress.EventError: text.Truncate(err.Error(), progress.MaxEventError)},
	}
}

// countRepair counts a drift repair that succeeded. If admission undid a write, it has the
// target reconciled again later: no event of the API server may follow such a write.
func (c *controller) countRepair(outcome progress.Outcome, seen progress.ExternalChange) {
	cause, repaired := c.progress.Settle(outcome, seen, c.now())
	if repaired {
		c.metrics.repairs.WithLabelValues(outcome.Rule, string(cause)).Inc()
		c.emitReverted(outcome, cause)
	}
	if target := outcome.State.Target; outcome.Undone != "" {
		c.queue.After(target, c.progress.RepairWait(target, c.now()))
	}
}

// emitReverted informs the owner of a namespace, on the clone, that an edit of it was undone.
func (c *controller) emitReverted(outcome progress.Outcome, cause progress.Cause) {
	clone, source := outcome.State.Clone, sourceReference(outcome.State)
	if cause != progress.Edited || source == nil || !c.progress.NoteEdit(outcome.State.Target, c.now()) {
		return
	}
	meta := clone.Meta()
	c.events.Record(events.Event{
		Rule: outcome.Rule, About: events.Reference("v1", string(outcome.State.Target.Kind), &meta), Related: source, Warning: true,
		Reason: cloneReverted, Action: string(outcome.Decision.Action),
		Note: fmt.Sprintf("rule %q keeps this object equal to %s/%s/%s, so what somebody changed here was undone; change that source instead", outcome.Rule, source.Kind, source.Namespace, source.Name),
	})
}

// reportNameTaken says, on the clone, that it has a name that an object of somebody else had.
func (c *controller) reportNameTaken(outcome progress.Outcome) {
	if outcome.Decision.Action != plan.Create {
		return
	}
	gone := c.progress.TakeName(outcome.State.Target)
	if gone.IsZero() {
		return
	}
	c.events.Record(events.Event{
		Rule: outcome.Rule, About: reference(outcome.State.Target), Related: sourceReference(outcome.State),
		Reason: nameTaken, Action: string(plan.Create),
		Note: fmt.Sprintf("rule %q clones here now; an object of somebody else had this name until %s", outcome.Rule, gone.UTC().Format(time.RFC3339)),
	})
}

// reportArrivals reports how long a change of the source took to reach a clone, and
// the last one.
func (c *controller) reportArrivals(arrivals []progress.Arrival) {
	for _, arrived := range arrivals {
		if arrived.Written {
			c.metrics.propagation.WithLabelValues(arrived.Key.Rule).Observe(arrived.Took.Seconds())
		}
		if arrived.Completed != nil && arrived.Completed.Clones > 0 {
			c.emitPropagation(arrived.Key, *arrived.Completed)
		}
	}
}

// emitPropagation reports that the last clone has the change.
func (c *controller) emitPropagation(key progress.PropagationKey, propagation progress.Propagation) {
	c.metrics.lastPropagation.WithLabelValues(key.Rule).Set(propagation.Took.Seconds())
	c.log.Info("change propagated", zap.String("rule", key.Rule), zap.Stringer("source", key.Source),
		zap.Int("clones", propagation.Clones), zap.Int("failing", propagation.Failing), zap.Duration("took", propagation.Took))
	about := reference(key.Source)
	if source, _ := c.Caches.Sources.Get(key.Source); source != nil {
		about = events.Reference("v1", string(key.Source.Kind), source)
	}
	c.events.Record(events.Event{
		Rule: key.Rule, About: about, Reason: Propagated, Action: string(plan.Update),
		Note: propagation.String(), Annotations: propagation.Annotations(),
	})
}

// missing returns one condition for each candidate rule whose named source did not exist
// when state was read. It does not read the cache again, because the source may have
// been recreated since.
func (c *controller) missing(state plan.State) (found []condition) {
	for _, candidate := range state.Candidates {
		if candidate.Source != nil {
			continue
		}
		about := reference(candidate.Ref)
		if _, found := c.Caches.Namespaces.Get("", candidate.Ref.Namespace); !found {
			about = c.ownReference()
		}
		found = append(found, condition{Event: events.Event{
			Rule: candidate.Rule.Name, About: about, Warning: true, Reason: sourceMissing, Action: string(plan.Leave),
			Note: missingNote(candidate.Rule, survey.MissingSource(candidate.Ref.String())),
		}})
	}
	return found
}

func missingNote(rule *spec.Rule, missing string) string {
	fate := "existing clones stay as they are"
	if rule.OnSourceDeleted == spec.Delete {
		fate = "existing clones are deleted while it does not exist, because onSourceDeleted is Delete"
	}
	return fmt.Sprintf("rule %q: %s; %s", rule.Name, missing, fate)
}

// ownReference returns Headwater's own namespace, which Events about a whole rule
// regard.
func (c *controller) ownReference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: c.ownNamespace, Namespace: c.ownNamespace}
}

// emitRemovals reports that removals of a rule are held, or that an approval
// permits them.
func (c *controller) emitRemovals(rule string, verdict plan.Verdict) {
	if verdict.Pass {
		c.emitApproved(rule, c.ownReference(), fmt.Sprintf("Headwater deletes %d of the %d clones of rule %q",
			len(verdict.Due.Targets), verdict.Due.Total, rule))
		return
	}
	held := events.Event{
		Rule: rule, About: c.ownReference(), // the source may not exist
		Related: c.sourceOfAny(verdict.Due.Targets), Warning: true,
		Reason: string(plan.MassRemoval), Action: string(plan.Hold), Note: verdict.Hold.Message,
	}
	c.emit(held, verdict.Since.String())
	if held.Related != nil && held.Related.UID != "" { // it does
		held.About, held.Related = held.Related, nil
		c.emit(held, verdict.Since.String())
	}
}

// sourceOfAny returns the first source, by name, of these clones; nil if none of
// the clones exists.
func (c *controller) sourceOfAny(clones []object.Ref) *corev1.ObjectReference {
	var first *object.Ref
	for _, target := range clones {
		clone, found := c.Caches.Clones[target.Kind].Get(target.Namespace, target.Name)
		if !found {
			continue
		}
		if marks, ours := mark.Of(clone); ours && (first == nil || marks.Source.String() < first.String()) {
			first = &marks.Source
		}
	}
	if first == nil {
		return nil
	}
	if source, _ := c.Caches.Sources.Get(*first); source != nil {
		return events.Reference("v1", string(first.Kind), source)
	}
	return reference(*first)
}

// emitApproved reports an action that an approval of rule permitted.
func (c *controller) emitApproved(rule string, about *corev1.ObjectReference, what string) {
	c.emit(events.Event{
		Rule: rule, About: about, Reason: approvedReason, Action: "Approve",
		Note: fmt.Sprintf("%s: %s", what, c.Approvals.Of(rule)),
	}, "")
}

// refusal returns the Event about a held or refused clone. It regards the object
// that must change: the conflicting object, or else the source.
func refusal(state plan.State, decision plan.Decision) events.Event {
	event := events.Event{
		Rule: ruleOf(state, decision), About: sourceReference(state), Warning: true,
		Reason: string(decision.Reason), Action: string(decision.Action), Note: decision.Message,
	}
	if decision.Reason == plan.Conflict {
		event.About, event.Related = reference(state.Target), event.About
	}
	return event
}

// losers returns one condition per rule that wants the target but comes after another
// rule.
func losers(state plan.State) []condition {
	if len(state.Candidates) < 2 || state.Namespace == nil || state.Namespace.Terminating {
		return nil
	}
	var found []condition
	for _, candidate := range state.Candidates[1:] {
		found = append(found, condition{Event: events.Event{
			Rule: candidate.Rule.Name, About: reference(state.Target), Warning: true, Reason: string(plan.OtherRule), Action: string(plan.Refuse),
			Note: plan.Outranked(candidate.Rule.Name, state.Candidates[0].Rule.Name).Message,
		}})
	}
	return found
}

func reference(ref object.Ref) *corev1.ObjectReference {
	meta := object.NewMeta(ref)
	return events.Reference("v1", string(ref.Kind), &meta)
}

// sourceReference returns the source of the first candidate, or else the source
// that the clone's marks name; nil if neither is known.
func sourceReference(state plan.State) *corev1.ObjectReference {
	if len(state.Candidates) > 0 {
		candidate := state.Candidates[0]
		if candidate.Source != nil {
			return events.Reference("v1", string(candidate.Ref.Kind), candidate.Source)
		}
		return reference(candidate.Ref)
	}
	if state.Clone == nil {
		return nil
	}
	marks, ours := mark.Of(state.Clone)
	if !ours {
		return nil
	}
	return reference(marks.Source)
}

// revision returns the source's resourceVersion, empty if there is no source.
func revision(state plan.State) string {
	if len(state.Candidates) == 0 || state.Candidates[0].Source == nil {
		return ""
	}
	return state.Candidates[0].Source.ResourceVersion
}

// emit records and logs event, unless it recently did so for this revision of the
// source. It returns how equal Events are found.
func (c *controller) emit(event events.Event, revision string) progress.EventKey {
	about := events.NameOf(event.About)
	key := progress.EventKey{About: about, Reason: event.Reason, Note: event.Note}
	due := c.progress.Due(key, revision, c.now())
	if due == dedupe.NotDue {
		return key
	}
	level := zap.InfoLevel
	if event.Warning {
		level = zap.WarnLevel
	}
	c.log.Log(level, event.Note, zap.String("reason", event.Reason), zap.String("about", about))
	event.Persisting = due != dedupe.Back
	c.events.Record(event)
	return key
}
