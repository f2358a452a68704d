package survey

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// ruleIndex are the rules that may want a place, found by its kind and name: to
// ask each rule about each place would take as long as there are rules, squared.
type ruleIndex struct {
	set *rules.Set[spec.Rule]
	// named want clones of one name; it has those of anyName beside them.
	named map[nameKey][]*spec.Rule
	// anyName have a selector, and call each clone as its source is called.
	anyName map[object.Kind][]*spec.Rule
}

type nameKey struct {
	kind object.Kind
	name string
}

func newRuleIndex(set *rules.Set[spec.Rule]) *ruleIndex {
	c := &ruleIndex{set: set, named: map[nameKey][]*spec.Rule{}, anyName: map[object.Kind][]*spec.Rule{}}
	all := set.All()
	for i := range all {
		rule := &all[i]
		if name, known := rule.FixedName(); known {
			at := nameKey{rule.Source.Kind, name}
			if _, found := c.named[at]; !found {
				c.named[at] = slices.Clone(c.anyName[at.kind])
			}
			c.named[at] = append(c.named[at], rule)
			continue
		}
		kind := rule.Source.Kind
		c.anyName[kind] = append(c.anyName[kind], rule)
		for at := range c.named {
			if at.kind == kind {
				c.named[at] = append(c.named[at], rule)
			}
		}
	}
	return c
}

// Of lists the rules that may want target, in the file's order.
func (c *ruleIndex) Of(target object.Ref) []*spec.Rule {
	if named, found := c.named[nameKey{target.Kind, target.Name}]; found {
		return named
	}
	return c.anyName[target.Kind]
}
