package plan

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Namespace is the part of the target namespace that Plan needs.
type Namespace struct {
	Name        string
	Labels      map[string]string
	Terminating bool
}

// Candidate is a rule that wants a clone of a source at some target.
type Candidate struct {
	Rule *spec.Rule
	Ref  object.Ref
	// Source is nil when it does not exist.
	Source *object.Full
	// Revision is the number of the recorded revision that Source's content is of; 0
	// for a rule without a delivery.
	Revision int
	// Unrecorded is true while no revision is known that the clone may have, because
	// the source's first one is not recorded yet, or was rejected.
	Unrecorded bool
	// Wanted is NewWanted of these, if the caller has it: it is the same for every
	// target. Plan computes it if it is nil.
	Wanted *Wanted
	// Emptied is what the source lacks, as Lack has it, while that may reach no clone.
	Emptied string
	// Invalid says why the source's content fails the rule's checks; empty if it
	// passes. It contains nothing of the content.
	Invalid string
	// ValidFrom is when it passes by itself; zero if it does not.
	ValidFrom time.Time
}

// State is everything that Plan decides on for one target: the observed objects,
// as the caches show them.
type State struct {
	Target object.Ref
	// Namespace is nil when it does not exist.
	Namespace *Namespace
	// Candidates are in the order of the file: the first wins.
	Candidates []Candidate
	// Clone is the existing object, if it has the marks of a clone for its place; see mark.Of.
	Clone *object.Digested
	// Former is the rule that the clone's marks name; nil if the configuration no
	// longer has it.
	Former *spec.Rule
	// Requested is what a user requested for a clone whose rule is no longer in the
	// configuration, or that does not name its place; empty without a request.
	Requested LeftoverFate
	// Taken is true if an object without these marks exists, such as a copy of a clone.
	// MadeByUs is true if its field managers show that it is a clone that lost them. Field managers can be
	// forged: MadeByUs justifies a write, never a deletion.
	Taken, MadeByUs bool
	// Found is the object without the marks; read only if NeedsFound says so, or if it has the
	// clone label.
	Found *object.Digested
}

// Fate is what becomes of a clone that exists.
type Fate int

const (
	// Stays is that of a clone that is not to be deleted.
	Stays Fate = iota
	// StaysWithSource is that of a clone which shows that none of its source is to be deleted: the
	// source is there, or its clones are retained or suspended.
	StaysWithSource
	// IsDue is that of a clone that Headwater is to delete.
	IsDue
	// Goes is that of a clone that is being deleted, or whose namespace is.
	Goes
)

// Fate returns that of the clone in s, and Goes if it is gone already.
func (s State) Fate() Fate {
	if s.Clone == nil {
		return Goes
	}
	decision, unwanted := s.Unwanted()
	marks, _ := mark.Of(s.Clone)
	switch {
	case s.Clone.IsTerminating() || decision.Reason == NamespaceGone:
		return Goes
	case unwanted && decision.IsGuarded():
		return IsDue
	case !unwanted && s.Candidates[0].Ref == marks.Source, decision.Reason == Suspended, decision.Reason == SourceDeleted:
		return StaysWithSource
	default:
		return Stays
	}
}

// NeedsFound reports whether Plan needs State.Found, because Headwater may write
// the object without the marks.
func (s State) NeedsFound() bool {
	return s.Clone == nil && s.Taken && s.Found == nil && len(s.Candidates) > 0 &&
		(s.MadeByUs || s.Candidates[0].Rule.OnConflict != spec.ConflictSkip)
}

// MayWrite reports whether rule may give the target its content, now or once a rule that goes
// first does not want it.
func (s State) MayWrite(rule *spec.Rule) bool {
	isForeign := s.Clone == nil && s.Taken && !s.MadeByUs
	return slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return c.Rule == rule }) &&
		(!isForeign || rule.OnConflict == spec.ConflictOverwrite)
}

// clone returns the clone, even if it lost its marks; nil if it was not read.
func (s State) clone() *object.Digested {
	if s.Clone == nil && s.MadeByUs {
		return s.Found
	}
	return s.Clone
}

// Live returns the existing object, with or without the marks; nil if it was not
// read.
func (s State) Live() *object.Digested {
	if s.Clone != nil {
		return s.Clone
	}
	return s.Found
}
