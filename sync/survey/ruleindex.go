package survey

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// ruleIndex finds the rules that may want a target by its kind and name. Asking
// each rule about each target would take quadratic time in the number of rules.
type ruleIndex struct {
	set *rules.Set[spec.Rule]
	// byName holds the rules whose clones all have that name, merged with those of
	// anyName.
	byName map[nameKey][]*spec.Rule
	// anyName holds the rules with a selector, whose clones have the name of their
	// source.
	anyName map[object.Kind][]*spec.Rule
}

type nameKey struct {
	kind object.Kind
	name string
}

func newRuleIndex(set *rules.Set[spec.Rule]) *ruleIndex {
	c := &ruleIndex{set: set, byName: map[nameKey][]*spec.Rule{}, anyName: map[object.Kind][]*spec.Rule{}}
	all := set.All()
	for i := range all {
		rule := &all[i]
		if name, known := rule.FixedName(); known {
			at := nameKey{rule.Source.Kind, name}
			if _, found := c.byName[at]; !found {
				c.byName[at] = slices.Clone(c.anyName[at.kind])
			}
			c.byName[at] = append(c.byName[at], rule)
			continue
		}
		kind := rule.Source.Kind
		c.anyName[kind] = append(c.anyName[kind], rule)
		for at := range c.byName {
			if at.kind == kind {
				c.byName[at] = append(c.byName[at], rule)
			}
		}
	}
	return c
}

// Of returns the rules that may want target, in the order of the file.
func (c *ruleIndex) Of(target object.Ref) []*spec.Rule {
	if named, found := c.byName[nameKey{target.Kind, target.Name}]; found {
		return named
	}
	return c.anyName[target.Kind]
}
