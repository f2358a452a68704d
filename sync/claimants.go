package sync

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// claimants are the rules that may want a place, found by its kind and name: to
// ask each rule about each place would take as long as there are rules, squared.
type claimants struct {
	set *rules.Set[Rule]
	// named want clones of one name; it has those of anyName beside them.
	named map[called][]*Rule
	// anyName have a selector, and call each clone as its source is called.
	anyName map[object.Kind][]*Rule
}

type called struct {
	kind object.Kind
	name string
}

func newClaimants(set *rules.Set[Rule]) *claimants {
	c := &claimants{set: set, named: map[called][]*Rule{}, anyName: map[object.Kind][]*Rule{}}
	all := set.All()
	for i := range all {
		rule := &all[i]
		if name, known := rule.onlyName(); known {
			at := called{rule.Source.Kind, name}
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

// of lists the rules that may want target, in the file's order.
func (c *claimants) of(target object.Ref) []*Rule {
	if named, found := c.named[called{target.Kind, target.Name}]; found {
		return named
	}
	return c.anyName[target.Kind]
}
