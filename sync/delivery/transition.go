package delivery

import (
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Edit is an edit of a source that is to be recorded.
type Edit struct {
	Rule     string
	Source   object.Ref
	EditedBy string
	At       time.Time
	// Content is what the source has now, and Digests those of its values.
	Content object.Content
	Digests object.Digests
	// Keys are those of the rule that are cloned; all if empty.
	Keys []spec.KeyMapping
	// Delivery is the annotation mark.Delivery of the source, and AllowAllAtOnce whether
	// it may skip the stages.
	Delivery       string
	AllowAllAtOnce bool
	// Invalid is why the content must not be delivered; empty if it may be.
	Invalid string
	// Rejected is why this content was rejected before, by any rule; empty if it was not.
	Rejected string
	// Unclear is why nobody knows whether it may be delivered; empty if that is known.
	Unclear string
	// Emptied and HeldUntil are those of the revision.
	Emptied   string
	HeldUntil time.Time
}

// Next returns the revision that records an edit. A first revision is delivered at once
// if there is nothing to go back to, as is each revision of a rule without stages, for
// which in is nil.
func Next(history revisions.History, edit Edit, in *stages.Stages) revisions.Revision {
	revision := revisions.Revision{
		Number: 1, Rule: edit.Rule, Source: edit.Source, EditedBy: edit.EditedBy, Recorded: edit.At, Verdict: revisions.Delivered,
		AllAtOnceValue: edit.Delivery, Emptied: edit.Emptied, HeldUntil: edit.HeldUntil, Content: edit.Content, Digests: edit.Digests,
	}
	newest, stable := history.Newest(), history.Base()
	if newest != nil {
		revision.Number = newest.Number + 1
	}
	if in != nil && stable != nil {
		revision.ChangedKeys = changedKeys(stable, &revision, edit.Keys)
	}
	allAtOnce := in != nil && stable != nil && edit.skipsStages(newest)
	switch {
	case edit.Invalid != "":
		revision.Verdict, revision.Reason = revisions.Rejected, edit.Invalid
	case edit.Rejected != "":
		revision.Verdict, revision.Reason = revisions.Rejected, edit.Rejected
	case edit.Unclear != "":
		revision.Verdict, revision.Reason, revision.AllAtOnce = revisions.Held, edit.Unclear, allAtOnce // in no stage, so that nobody gets it
	case in == nil:
	case stable != nil:
		revision.Verdict, revision.AllAtOnce = revisions.Delivering, allAtOnce
		revision.Enter(in.Name(firstLeft(in, &revision)), edit.At)
	}
	return revision
}

// skipsStages reports whether the source asks to skip the stages, may do so, and did not ask
// with newest already.
func (e Edit) skipsStages(newest *revisions.Revision) bool {
	return e.AllowAllAtOnce && isAllAtOnce(e.Delivery) && newest.AllAtOnceValue != e.Delivery
}

// isAllAtOnce reports whether the annotation of a source asks to skip the stages. Text
// after a colon makes it another value than that of the edit before.
func isAllAtOnce(value string) bool {
	return value == mark.AllAtOnce || strings.HasPrefix(value, mark.AllAtOnce+":")
}

// changedKeys returns the keys that differ from stable, named as the clones have them;
// nil if the whole object counts as changed.
func changedKeys(stable, next *revisions.Revision, keys []spec.KeyMapping) []string {
	if stable.Content.Type != next.Content.Type || stable.Content.Immutable != next.Content.Immutable {
		return nil
	}
	changed := []string{}
	for _, one := range next.Digests {
		if !slices.Contains(stable.Digests, one) {
			changed = append(changed, one.Key)
		}
	}
	for _, one := range stable.Digests {
		if !slices.ContainsFunc(next.Digests, func(d object.KeyDigest) bool { return d.Key == one.Key }) {
			changed = append(changed, one.Key)
		}
	}
	if len(keys) > 0 {
		cloned := []string{}
		for _, mapping := range keys {
			if slices.Contains(changed, mapping.From) {
				cloned = append(cloned, mapping.Target())
			}
		}
		changed = cloned
	}
	slices.Sort(changed)
	return changed
}
