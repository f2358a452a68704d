package plan

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Namespace is what Plan needs to know of the target namespace.
type Namespace struct {
	Name        string
	Labels      map[string]string
	Terminating bool
}

// Candidate is a rule's wish to have a clone of a source in some place.
type Candidate struct {
	Rule *spec.Rule
	Ref  object.Ref
	// Source is nil when it does not exist.
	Source *object.Full
	// Approved is true when a person approved that the clones be emptied with
	// this revision of the source.
	Approved bool
}

// State is everything that Plan decides on about one place in a namespace:
// what is, as the caches show it.
type State struct {
	Target object.Ref
	// Namespace is nil when it does not exist.
	Namespace *Namespace
	// Candidates are in the file's order: the first wins.
	Candidates []Candidate
	// Clone is the object in the place when it carries the clone label.
	Clone *object.Digested
	// Former is the rule that the clone's marks name; nil when the file no
	// longer has it.
	Former *spec.Rule
	// Requested is what a person wants done with the clone, whose rule the file no
	// longer has; empty when nothing is.
	Requested LeftoverFate
	// Taken is true when the object in the place lacks that label;
	// MadeByUs, when field managers tell that it is a clone that lost it. That
	// can be forged: it is reason to write, never to delete.
	Taken, MadeByUs bool
	// Found is the object that lacks the label, where more has to be known of
	// it; see NeedsFound.
	Found *object.Digested
}

// NeedsFound reports whether Plan needs to know what the object without the
// label holds: it may be written.
func (s State) NeedsFound() bool {
	return s.Clone == nil && s.Taken && len(s.Candidates) > 0 &&
		(s.MadeByUs || s.Candidates[0].Rule.OnConflict != spec.ConflictSkip)
}

// clone is the clone in the place, also one that lost its label, as far as it
// is known.
func (s State) clone() *object.Digested {
	if s.Clone == nil && s.MadeByUs {
		return s.Found
	}
	return s.Clone
}

// Live is the object in the place, as far as it is known.
func (s State) Live() *object.Digested {
	if s.Clone != nil {
		return s.Clone
	}
	return s.Found
}
