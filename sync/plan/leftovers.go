package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// LeftoverFate is what a person wants done with the clones of a rule that the
// configuration no longer has.
type LeftoverFate string

// The fates of leftovers.
const (
	// ReleaseClones takes Headwater's marks off; the objects stay.
	ReleaseClones LeftoverFate = "Release"
	// PruneClones deletes the clones.
	PruneClones LeftoverFate = "Prune"
)

// Leftovers is a person's approval of what is done with the clones of a rule that
// the configuration no longer has. It is bound to the clones as they were: one
// that was created or changed since is not touched.
type Leftovers struct {
	Fate LeftoverFate `json:"fate"`
	// Clones is how many there were.
	Clones int `json:"clones"`
	// Revisions hold the highest resourceVersion that a clone of each kind had.
	Revisions Revisions `json:"revisions"`
}

// Revisions are resourceVersions by kind: those of two kinds cannot be compared.
type Revisions map[object.Kind]string

// add raises the revision of its kind to that of clone.
func (r Revisions) add(clone *object.Digested) {
	if known, found := r[clone.Kind]; !found || object.NewerThan(clone.ResourceVersion, known) {
		r[clone.Kind] = clone.ResourceVersion
	}
}

// Cover reports whether clone has not been written since. It is false where that
// cannot be told.
func (r Revisions) Cover(clone *object.Digested) bool {
	order, err := resourceversion.CompareResourceVersion(clone.ResourceVersion, r[clone.Kind])
	return err == nil && order <= 0
}

// NewLeftovers returns the approval to have fate done with clones.
func NewLeftovers(fate LeftoverFate, clones []*object.Digested) *Leftovers {
	leftovers := &Leftovers{Fate: fate, Clones: len(clones), Revisions: Revisions{}}
	for _, clone := range clones {
		leftovers.Revisions.add(clone)
	}
	return leftovers
}

// FateOf is what is to be done with clone; empty when nothing is. l may be nil.
func (l *Leftovers) FateOf(clone *object.Digested) LeftoverFate {
	if l == nil || !l.Revisions.Cover(clone) {
		return ""
	}
	return l.Fate
}

// Sentence says what is done with the clones of rule.
func (l *Leftovers) Sentence(rule string) string {
	done := "deleted"
	if l.Fate == ReleaseClones {
		done = "released: Headwater's marks are taken off them"
	}
	return fmt.Sprintf("%s of rule %q, which is no longer in the configuration, are %s", plural.Of(l.Clones, "clone"), rule, done)
}

// abandoned is the step about a clone of a rule that the configuration no longer
// has.
func (s State) abandoned(onRuleRemoved string) Decision {
	switch {
	case s.Requested == PruneClones:
		return Decision{Action: Remove, Reason: Pruned}
	case s.Requested == ReleaseClones:
		return Decision{Action: Release, Reason: Released}
	case onRuleRemoved == string(spec.Delete):
		return Decision{Action: Remove, Reason: RuleRemoved}
	default:
		return leave(RuleRemoved)
	}
}

// IsLeftover reports whether the clone is of a rule that the configuration no
// longer has, and stays for no other rule.
func (s State) IsLeftover() bool {
	step := s.Unwanted()
	return s.Former == nil && step != nil && (step.Reason == RuleRemoved || step.Reason == Pruned || step.Reason == Released)
}
