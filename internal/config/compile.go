package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/validate"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// Sets are the rules as each module sees them.
type Sets struct {
	// Bases are those of all rules, in the file's order.
	Bases   []rules.Base
	Sync    *rules.Set[syncspec.Rule]
	Protect *rules.Set[protectspec.Rule]
	Reload  *rules.Set[reloadspec.Rule]
}

// Compile prepares the rules of a Config that Load or Parse returned.
// ownNamespace is Headwater's own; nothing is ever cloned into it.
func (c *Config) Compile(ownNamespace string) (Sets, error) {
	var (
		bases    []rules.Base
		syncs    []syncspec.Rule
		protects []protectspec.Rule
		reloads  []reloadspec.Rule
	)
	for _, rule := range c.Rules {
		base, err := rules.NewBase(rule.Name, rule.Source)
		if err != nil {
			return Sets{}, err
		}
		if base.Validator, err = validate.Compile(rule.Validate); err != nil {
			return Sets{}, fmt.Errorf("rule %s: %w", rule.Name, err)
		}
		bases = append(bases, base)
		if rule.Sync != nil {
			compiled, err := syncspec.Compile(base, *rule.Sync, ownNamespace)
			if err != nil {
				return Sets{}, err
			}
			syncs = append(syncs, compiled)
		}
		if rule.Protect != nil {
			compiled := protectspec.Rule{Base: base, Config: *rule.Protect}
			if rule.Sync != nil {
				compiled.Copied = protectspec.Copied{Labels: rule.Sync.Target.CopyLabels, Annotations: rule.Sync.Target.CopyAnnotations}
			}
			protects = append(protects, compiled)
		}
		if rule.Reload != nil {
			compiled, err := reloadspec.Compile(base, *rule.Reload)
			if err != nil {
				return Sets{}, err
			}
			if rule.Sync != nil {
				compiled = compiled.ClonedAs(rule.Sync.Target.Name, syncs[len(syncs)-1].Into())
				compiled.Delivered = rule.Sync.Delivery != nil && rule.Sync.Delivery.Gate.Consumers != syncspec.GateNone
			}
			reloads = append(reloads, compiled)
		}
	}
	return Sets{
		Bases:   bases,
		Sync:    rules.NewSet(syncs...),
		Protect: rules.NewSet(protects...),
		Reload:  rules.NewSet(reloads...),
	}, nil
}

// Places lists where the sources of all rules live, each place once, sorted.
func (s Sets) Places() []informers.Place {
	places := slices.Concat(placesOf(s.Sync), placesOf(s.Protect), placesOf(s.Reload))
	slices.SortFunc(places, func(a, b informers.Place) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(places)
}

func placesOf[R rules.Rule](set *rules.Set[R]) []informers.Place {
	var places []informers.Place
	for _, rule := range set.All() {
		source := rule.RuleBase().Source
		places = append(places, informers.Place{Kind: source.Kind, Namespace: source.Namespace})
	}
	return places
}
