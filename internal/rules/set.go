package rules

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/validate"
)

// Base is the part of a rule that every module sees. Module rules embed it.
type Base struct {
	Name   string
	Source Source
	// Validator checks the content of the source; nil if the rule has no checks.
	Validator *validate.Validator
	// Suspended is true while nothing is written for the rule: no clone, no delivery, no
	// consumer. It still protects.
	Suspended bool
	// selector is nil for a source given by name.
	selector labels.Selector
}

// NewBase prepares a validated source.
func NewBase(name string, source Source) (Base, error) {
	base := Base{Name: name, Source: source}
	if source.Selector == nil {
		return base, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(source.Selector)
	if err != nil {
		return Base{}, fmt.Errorf("rule %s: source selector: %w", name, err)
	}
	base.selector = selector
	return base, nil
}

// Selects reports whether the object ref, which carries objectLabels, is a
// source of the rule.
func (b Base) Selects(ref object.Ref, objectLabels map[string]string) bool {
	if b.selector == nil {
		return ref == b.Source.Ref()
	}
	return ref == b.Source.Named(ref.Name) && b.selector.Matches(labels.Set(objectLabels))
}

// BySelector reports whether the rule's sources are selected by label.
func (b Base) BySelector() bool { return b.selector != nil }

// Requirements returns what the labels of a source must fulfil; nil for a
// source given by name.
func (b Base) Requirements() labels.Requirements {
	if b.selector == nil {
		return nil
	}
	requirements, _ := b.selector.Requirements()
	return requirements
}

// RuleBase makes every type that embeds Base a Rule.
func (b Base) RuleBase() Base { return b }

// Rule is one module's view of a rule.
type Rule interface{ RuleBase() Base }

// Set is an immutable list of one module's rules, in the file's order.
type Set[R Rule] struct {
	all    []R
	byName map[string]*R
}

// NewSet indexes all, whose names must be unique.
func NewSet[R Rule](all ...R) *Set[R] {
	s := &Set[R]{all: all, byName: map[string]*R{}}
	for i := range all {
		s.byName[all[i].RuleBase().Name] = &all[i]
	}
	return s
}

// All returns the rules in the file's order.
func (s *Set[R]) All() []R { return s.all }

// Named returns the rule of that name, which is not to be modified.
func (s *Set[R]) Named(name string) (*R, bool) {
	rule, ok := s.byName[name]
	return rule, ok
}

// ForSource returns the rules that have the object ref, which carries
// objectLabels, as a source, in the file's order.
func (s *Set[R]) ForSource(ref object.Ref, objectLabels map[string]string) []R {
	var found []R
	for _, rule := range s.all {
		if rule.RuleBase().Selects(ref, objectLabels) {
			found = append(found, rule)
		}
	}
	return found
}

// Live holds the Set in force.
type Live[R Rule] = live.Value[*Set[R]]

// NewLive starts with set in force.
func NewLive[R Rule](set *Set[R]) *Live[R] { return live.New(set) }
