package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/validate"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// HeldError is why a valid configuration is not put in force: it removes so much that it
// may be a mistake. Until somebody says that it is meant, it counts as one that is not
// valid.
type HeldError struct {
	// Revision is that of the held configuration.
	Revision string
	// Rules are the rules in force of which it removes a section, sorted.
	Rules []string
	// Why says what it would do.
	Why string
}

// shownRules is how many rules a message names.
const shownRules = 5

// Error says what was removed and what to do. It contains names only.
func (h *HeldError) Error() string {
	names := strings.Join(h.Rules[:min(len(h.Rules), shownRules)], ", ")
	if more := len(h.Rules) - shownRules; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("the configuration is held: %s. Put back, or name in removedRules: %s; or run `headwater approve --configuration %s`", h.Why, names, h.Revision)
}

// section is a section of a rule, by what identifies it whatever the rule's name.
type section struct{ name, source string }

func (s section) compare(t section) int {
	return cmp.Or(cmp.Compare(s.source, t.source), cmp.Compare(s.name, t.name))
}

const (
	syncSection    = "sync"
	protectSection = "protect"
)

// sections returns the rules by their sections.
func (c *Config) sections() map[section]Rule {
	all := map[section]Rule{}
	for _, rule := range c.Rules {
		if rule.Sync != nil {
			all[section{syncSection, rule.Source.String()}] = rule
		}
		if rule.Protect != nil {
			all[section{protectSection, rule.Source.String()}] = rule
		}
	}
	return all
}

// Held returns why next must not take the place of c, which is in force; nil if it may.
// A section sync or protect counts as removed if next has none for its source. It is held
// if no rule is left, if Enforce protects the source of a removed section, or if more than
// safety.maxDeleteFraction of the sync sections, and at least two, are removed. What
// next.RemovedRules names may go.
func (c *Config) Held(next *Config) *HeldError {
	removed := c.removed(next)
	held := &HeldError{Revision: next.Revision, Rules: removed.rules}
	unnamed, most := c.unnamed(next.RemovedRules), math.Floor(*c.Safety.MaxDeleteFraction*float64(removed.cloned))
	switch {
	case len(next.Rules) == 0 && len(unnamed) > 0:
		held.Rules, held.Why = unnamed, "it has no rule"
	case removed.enforced != "":
		held.Why = removed.enforced
	case removed.syncs > 1 && float64(removed.syncs) > most:
		held.Why = fmt.Sprintf("it removes %d of %d sync sections, and safety.maxDeleteFraction is %v", removed.syncs, removed.cloned, *c.Safety.MaxDeleteFraction)
	default:
		return nil
	}
	return held
}

// removed is what a configuration removes of the one in force.
type removed struct {
	// rules are those that lose a section, sorted.
	rules []string
	// enforced is about the first section, by source, whose source Enforce protects; empty
	// if there is none.
	enforced string
	// syncs is how many of cloned sections sync go.
	syncs, cloned int
}

func (c *Config) removed(next *Config) (all removed) {
	before, after := c.sections(), next.sections()
	for _, one := range slices.SortedFunc(maps.Keys(before), section.compare) {
		rule := before[one]
		if one.name == syncSection {
			all.cloned++
		}
		if _, stays := after[one]; stays || slices.Contains(next.RemovedRules, rule.Name) {
			continue
		}
		all.rules = append(all.rules, rule.Name)
		if one.name == syncSection {
			all.syncs++
		}
		if by := before[section{protectSection, one.source}]; all.enforced == "" && by.Protect != nil && protectspec.Enforces(by.Protect.Mode) {
			all.enforced = fmt.Sprintf("it removes %s of %s, which mode Enforce protects", one.name, one.source)
		}
	}
	slices.Sort(all.rules)
	all.rules = slices.Compact(all.rules)
	return all
}

// unnamed returns the rules of c that names does not have, sorted.
func (c *Config) unnamed(names []string) (rules []string) {
	for _, rule := range c.Rules {
		if !slices.Contains(names, rule.Name) {
			rules = append(rules, rule.Name)
		}
	}
	slices.Sort(rules)
	return rules
}

// Weakened says what next protects less than c, which was in force before: one line for each
// source that a protect section of c has, and one for what is about all.
func (c *Config) Weakened(next *Config) (lines []string) {
	after := next.sections()
	if what := c.Protect.Weakened(next.Protect); len(what) > 0 {
		lines = append(lines, "every source: "+strings.Join(what, ", "))
	}
	for _, rule := range c.Rules {
		if rule.Protect == nil {
			continue
		}
		now, stays := after[section{protectSection, rule.Source.String()}]
		what := []string{"no protect section any more"}
		if stays {
			what = append(rule.Protect.Weakened(*now.Protect), unchecked(rule.Validate, now.Validate)...)
		}
		if len(what) > 0 {
			lines = append(lines, rule.Source.String()+": "+strings.Join(what, ", "))
		}
	}
	return lines
}

// unchecked says which keys next does not check any more.
func unchecked(checks, next validate.Checks) (what []string) {
	for _, check := range checks {
		if !slices.ContainsFunc(next, func(other validate.Check) bool { return other.Key == check.Key }) {
			what = append(what, "validate without a check of "+check.Key)
		}
	}
	return what
}
