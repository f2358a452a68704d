package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// LeftoverFate is what a user requests for the clones that IsLeftover is true for.
type LeftoverFate string

// The fates of leftovers.
const (
	// ReleaseClones removes Headwater's marks; the objects stay.
	ReleaseClones LeftoverFate = "Release"
	// PruneClones deletes the clones.
	PruneClones LeftoverFate = "Prune"
)

// Leftovers is a user's request to release or delete the clones of a rule that no
// rule wants. It applies only to clones that were not created
// or changed since the request.
type Leftovers struct {
	Fate LeftoverFate `json:"fate"`
	// Clones is how many clones existed at the time of the request.
	Clones int `json:"clones"`
	// Revisions is the highest resourceVersion of the clones of each kind.
	Revisions Revisions `json:"revisions"`
}

// Revisions holds resourceVersions by kind: those of two kinds are not comparable.
type Revisions map[object.Kind]string

// add raises the revision of the clone's kind to that of clone.
func (r Revisions) add(clone *object.Digested) {
	if known, found := r[clone.Kind]; !found || object.NewerThan(clone.ResourceVersion, known) {
		r[clone.Kind] = clone.ResourceVersion
	}
}

// Cover reports whether clone has not been written since. It is false if the
// resourceVersions cannot be compared.
func (r Revisions) Cover(clone *object.Digested) bool {
	order, err := resourceversion.CompareResourceVersion(clone.ResourceVersion, r[clone.Kind])
	return err == nil && order <= 0
}

// NewLeftovers returns the request to apply fate to clones.
func NewLeftovers(fate LeftoverFate, clones []*object.Digested) *Leftovers {
	leftovers := &Leftovers{Fate: fate, Clones: len(clones), Revisions: Revisions{}}
	for _, clone := range clones {
		leftovers.Revisions.add(clone)
	}
	return leftovers
}

// FateOf returns the request for clone, empty if l does not cover it. l may be nil.
func (l *Leftovers) FateOf(clone *object.Digested) LeftoverFate {
	if l == nil || !l.Revisions.Cover(clone) {
		return ""
	}
	return l.Fate
}

// Sentence describes for an Event what Headwater does with the clones of rule.
func (l *Leftovers) Sentence(rule string) string {
	does := "deletes"
	if l.Fate == ReleaseClones {
		does = "removes its marks from"
	}
	return fmt.Sprintf("Headwater %s %s of rule %q that no rule wants", does, plural.Of(l.Clones, "clone"), rule)
}

// ruleRemoved returns the decision about a clone with these marks, whose rule is no
// longer in the configuration.
func (s State) ruleRemoved(marks mark.Clone) Decision {
	switch {
	case s.Requested == PruneClones:
		return Decision{Action: Remove, Reason: Pruned}
	case s.Requested == ReleaseClones:
		return Decision{Action: Release, Reason: Released}
	case marks.OnRuleRemoved == string(spec.Delete):
		return s.remove(marks, RuleRemoved)
	default:
		return leave(RuleRemoved)
	}
}

// IsLeftover reports whether no rule wants the clone and a user decides what becomes of it:
// its rule is no longer in the configuration, or it does not name its place.
func (s State) IsLeftover() bool {
	decision, unwanted := s.Unwanted()
	return unwanted && slices.Contains([]Reason{RuleRemoved, PlaceUnknown, Pruned, Released}, decision.Reason)
}
