package sync

import (
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/object"
)

// Safety is the safety section of the file.
type Safety struct {
	// MaxDeleteFraction of a rule's clones may be removed at once without a
	// person's approval.
	MaxDeleteFraction *float64 `json:"maxDeleteFraction,omitempty"`
}

const defaultMaxDeleteFraction = 0.3

// Default fills in every key that was left out.
func (s *Safety) Default() {
	if s.MaxDeleteFraction == nil {
		fraction := defaultMaxDeleteFraction
		s.MaxDeleteFraction = &fraction
	}
}

// Validate reports everything that is wrong with s.
func (s Safety) Validate(at *field.Path) field.ErrorList {
	if s.MaxDeleteFraction != nil && (*s.MaxDeleteFraction < 0 || *s.MaxDeleteFraction > 1) {
		return field.ErrorList{field.Invalid(at.Child("maxDeleteFraction"), *s.MaxDeleteFraction, "write a number from 0 to 1")}
	}
	return nil
}

// LiveSafety is the Safety in force.
type LiveSafety struct{ safety atomic.Pointer[Safety] }

// NewLiveSafety starts with a defaulted Safety.
func NewLiveSafety(safety Safety) *LiveSafety {
	live := &LiveSafety{}
	live.Swap(safety)
	return live
}

// Swap puts safety, which is defaulted, in force.
func (l *LiveSafety) Swap(safety Safety) { l.safety.Store(&safety) }

// MaxDeleteFraction is Safety's.
func (l *LiveSafety) MaxDeleteFraction() float64 { return *l.safety.Load().MaxDeleteFraction }

const (
	// atOnce is how long a removal counts as part of those that follow it:
	// whoever relabels a thousand namespaces does it one by one.
	atOnce = time.Minute
	// fewRemovals are never held, or a rule of three clones would hold the
	// first; kube-controller-manager's eviction of nodes draws the same line.
	fewRemovals = 2
)

// dueRemovals is what is due to be removed of the clones of one rule, of how
// many, and how many removals a person has approved.
type dueRemovals struct {
	targets         []object.Ref
	total, approved int
}

// held reports whether the removal needs a person's approval first. gone is how
// many clones of the rule were removed a moment ago.
func (d dueRemovals) held(maxFraction float64, gone int) bool {
	due := len(d.targets)
	if due == 0 || due <= d.approved {
		return false
	}
	if d.approved > 0 {
		gone = 0 // approved
	}
	if due+gone <= fewRemovals && maxFraction > 0 {
		return false
	}
	return float64(due+gone) > maxFraction*float64(d.total+gone)
}

// step is what becomes of a removal that is held.
func (d dueRemovals) step(rule string) Step {
	return *hold(MassRemoval, fmt.Sprintf("%d of the %d clones of rule %q are due to be removed, more than safety.maxDeleteFraction allows at once; "+
		"undo the change, or run `headwater approve %s`", len(d.targets), d.total, rule, rule))
}
