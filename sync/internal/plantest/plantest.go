// Package plantest holds states of plan for the tests of the rooms above it.
package plantest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// CloneOf returns the clone of source that rule writes to namespace, as the cache shows
// it.
func CloneOf(tb testing.TB, rule *spec.Rule, source *object.Full, namespace string) *object.Digested {
	tb.Helper()
	clone := plan.Candidate{Rule: rule, Ref: source.Ref(), Source: source}.Desired(namespace).Digested(synctest.Hasher(tb))
	clone.UID, clone.ResourceVersion = "clone-1", "7"
	return Cached(clone)
}

// Cached returns clone, which names its place, as the cache shows it.
func Cached(clone *object.Digested) *object.Digested {
	delete(clone.Annotations, mark.Target)
	clone.Place = object.Here
	return clone
}

// StateOf returns the state in which rule wants a clone of source in namespace.
func StateOf(rule *spec.Rule, source *object.Full, namespace *plan.Namespace) plan.State {
	return plan.State{
		Target: rule.TargetRef(source.Ref(), namespace.Name), Namespace: namespace, Former: rule,
		Candidates: []plan.Candidate{{Rule: rule, Ref: source.Ref(), Source: source}},
	}
}

// InSync gives s the clone that its first candidate wants.
func InSync(tb testing.TB, s *plan.State) {
	tb.Helper()
	s.Clone = CloneOf(tb, s.Candidates[0].Rule, s.Candidates[0].Source, s.Namespace.Name)
}

// Terminate makes the clone of s one that is being deleted.
func Terminate(s *plan.State) {
	meta := s.Clone.Meta()
	meta.DeletionTimestamp = &metav1.Time{}
	s.Clone = object.NewDigested(meta, *s.Clone.Common)
}

// AsRead makes the object at the target of s, if it is not marked as a clone, what a reader of
// the caches makes of it.
func AsRead(s *plan.State) {
	if s.Clone == nil {
		return
	}
	if _, ours := mark.Of(s.Clone); !ours {
		s.Found, s.Clone, s.Taken, s.MadeByUs = s.Clone, nil, true, s.Clone.MadeByUs
	}
}

// Unlabel removes the label from the clone of s.
func Unlabel(s *plan.State) {
	delete(s.Clone.Labels, mark.CloneLabel)
	s.Found, s.Clone, s.Taken, s.MadeByUs = s.Clone, nil, true, true
}
