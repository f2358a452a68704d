package protect

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// maxSharing is how many rules may be about one object, or guard one namespace,
// for the override to count rule by rule. Among more it counts only when held
// for every rule: the API server pays for no more than 28 questions about
// permissions in a policy, and for a webhook each is one more webhook.
const maxSharing = 20

// sharing counts the rules that may be about one object, and those that guard
// one namespace. By name, no more than one rule protects an object.
type sharing struct {
	// selecting is by the sources' kind and namespace.
	selecting map[object.Ref]int
	guarding  map[string]int
}

func sharingOf(set *rules.Set[Rule]) sharing {
	s := sharing{selecting: map[object.Ref]int{}, guarding: map[string]int{}}
	for _, rule := range set.All() {
		if rule.BySelector() {
			s.selecting[rule.Source.Named("")]++
		}
		if rule.guards() {
			s.guarding[rule.Source.Namespace]++
		}
	}
	return s
}

// bySource is the name of rule if its override counts by itself for its
// sources, and empty if only that for every rule does.
func (s sharing) bySource(rule Rule) string {
	count := s.selecting[rule.Source.Named("")]
	if !rule.BySelector() {
		count++
	}
	return unlessCrowded(rule, count)
}

// byNamespace is bySource for the namespace that rule guards.
func (s sharing) byNamespace(rule Rule) string {
	return unlessCrowded(rule, s.guarding[rule.Source.Namespace])
}

func unlessCrowded(rule Rule, count int) string {
	if count > maxSharing {
		return ""
	}
	return rule.Name
}
