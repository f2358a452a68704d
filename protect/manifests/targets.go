package manifests

import (
	"cmp"
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// maxOverlap is how many rules may be about one object, or guard one namespace,
// for the override to count rule by rule. Among more it counts only when held
// for every rule: the API server pays for no more than 28 questions about
// permissions in a policy, and for a webhook each is one more webhook.
const maxOverlap = 20

// overlaps counts the rules that may be about one object, and those that guard
// one namespace. By name, no more than one rule protects an object.
type overlaps struct {
	// selecting is by the sources' kind and namespace.
	selecting map[object.Ref]int
	guarding  map[string]int
}

func countOverlaps(set *rules.Set[spec.Rule]) overlaps {
	s := overlaps{selecting: map[object.Ref]int{}, guarding: map[string]int{}}
	for _, rule := range set.All() {
		if rule.BySelector() {
			s.selecting[rule.Source.Named("")]++
		}
		if rule.Guards() {
			s.guarding[rule.Source.Namespace]++
		}
	}
	return s
}

// bySource is the name of rule if its override counts by itself for its
// sources, and empty if only that for every rule does.
func (s overlaps) bySource(rule spec.Rule) string {
	count := s.selecting[rule.Source.Named("")]
	if !rule.BySelector() {
		count++
	}
	return perRuleOverride(rule, count)
}

// byNamespace is bySource for the namespace that rule guards.
func (s overlaps) byNamespace(rule spec.Rule) string {
	return perRuleOverride(rule, s.guarding[rule.Source.Namespace])
}

func perRuleOverride(rule spec.Rule, count int) string {
	if count > maxOverlap {
		return ""
	}
	return rule.Name
}

const (
	// maxPerWebhook keeps an expression below the 100,000 characters that CEL
	// takes, however long the names are.
	maxPerWebhook = 150
	// maxNamedPerWebhook keeps the URL short, which people see in an outage.
	maxNamedPerWebhook = 20
)

// target is what a webhook asks about: an operation on one object or on the
// clones of one rule, or the deletion of a namespace, and a rule that may refuse
// it.
type target struct {
	// key is, in the CEL of the webhook, how the request shows.
	key, namespace string
	// override is the name of the rule whose override counts, empty if only that
	// for every rule does.
	override string
	mode     spec.Mode
	// onlyDeletionCounts is true for an update that counts only if it comes to a deletion.
	onlyDeletionCounts bool
	// overrideGroup keeps apart the rules that guard one namespace, from 1 on. It is 0
	// where one question is enough: about one rule, or about all at once.
	overrideGroup int
}

// sourceTargets lists what set protects by name, in a stable order.
func sourceTargets(set *rules.Set[spec.Rule]) []target {
	overlap := countOverlaps(set)
	var all []target
	for _, rule := range sortedRules(set) {
		if rule.BySelector() {
			continue
		}
		for _, operation := range rule.Covered() {
			all = append(all, target{
				key: operation.Upper() + " " + keyOf(rule.Source.Ref()), namespace: rule.Source.Namespace,
				override: overlap.bySource(rule), mode: rule.Mode, onlyDeletionCounts: rule.OnlyDeletionCounts(operation),
			})
		}
	}
	return sortTargets(all)
}

// namespaceTargets lists the namespaces that set guards, in a stable order.
func namespaceTargets(set *rules.Set[spec.Rule]) []target {
	overlap, groups := countOverlaps(set), map[string]int{}
	var all []target
	for _, rule := range sortedRules(set) {
		if !rule.Guards() {
			continue
		}
		t := target{key: rule.Source.Namespace, override: overlap.byNamespace(rule), mode: rule.Mode}
		if t.override != "" && overlap.guarding[t.key] > 1 {
			groups[t.key]++
			t.overrideGroup = groups[t.key]
		}
		all = append(all, t)
	}
	return sortTargets(all)
}

// cloneTargets lists the rules whose clones nobody may change.
func cloneTargets(set *rules.Set[spec.Rule]) []target {
	var all []target
	for _, rule := range set.All() {
		if rule.Clones != spec.Deny {
			continue
		}
		for _, operation := range rule.CoveredOfClones() {
			all = append(all, target{
				key:      operation.Upper() + " " + rule.Source.Kind.Resource() + "/" + rule.Name,
				override: rule.Name, mode: rule.Mode, onlyDeletionCounts: rule.OnlyDeletionCounts(operation),
			})
		}
	}
	return sortTargets(all)
}

// sortTargets sorts targets by layer and key. Where one question is about several
// rules, the strictest stands for all.
func sortTargets(all []target) []target {
	slices.SortFunc(all, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.overrideGroup, b.overrideGroup), cmp.Compare(a.key, b.key), cmp.Compare(b.mode.Strictness(), a.mode.Strictness()))
	})
	return slices.CompactFunc(all, func(a, b target) bool { return a.overrideGroup == b.overrideGroup && a.key == b.key })
}

// groupTargets divides arranged targets among webhooks, none of which asks about two
// rules at once.
func groupTargets(all []target, enforced bool) [][]target {
	var groups [][]target
	for _, t := range all {
		if spec.Enforces(t.mode) != enforced {
			continue
		}
		last := len(groups) - 1
		if last < 0 || groups[last][0].overrideGroup != t.overrideGroup || len(groups[last]) == maxTargets(t.overrideGroup) {
			groups, last = append(groups, nil), last+1
		}
		groups[last] = append(groups[last], t)
	}
	return groups
}

func maxTargets(overrideGroup int) int {
	if overrideGroup == 0 {
		return maxPerWebhook
	}
	return maxNamedPerWebhook
}

// scopeOf is what a webhook of this group asks.
func scopeOf(about decide.About, group []target) decide.Scope {
	scope := decide.Scope{About: about}
	for _, t := range group {
		if t.overrideGroup > 0 {
			scope.Rules = append(scope.Rules, t.override)
		}
	}
	slices.Sort(scope.Rules)
	scope.Rules = slices.Compact(scope.Rules)
	return scope
}

// sortedRules lists the rules in a stable order.
func sortedRules(set *rules.Set[spec.Rule]) []spec.Rule {
	return slices.SortedFunc(slices.Values(set.All()), func(a, b spec.Rule) int { return cmp.Compare(a.Name, b.Name) })
}
