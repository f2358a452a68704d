package manifests

import (
	"cmp"
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// maxOverlap is the maximum number of rules about one object or namespace for
// which the override permission is checked rule by rule. With more rules, only
// the permission for every rule counts: a policy can make at most 28
// authorization checks, and each needs a webhook of its own.
const maxOverlap = 20

// overlaps counts the rules that may protect one object, and those that guard
// one namespace. At most one rule names an object as its source.
type overlaps struct {
	// selecting is keyed by kind and namespace of the sources.
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

// bySource returns the rule whose override applies to the sources of rule: the
// rule itself, or "" if only the override for every rule applies.
func (s overlaps) bySource(rule spec.Rule) string {
	count := s.selecting[rule.Source.Named("")]
	if !rule.BySelector() {
		count++
	}
	return perRuleOverride(rule, count)
}

// byNamespace is like bySource, but for the namespace that rule guards.
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
	// maxPerWebhook limits the targets of a webhook, so that an expression with
	// the longest names stays below CEL's limit of 100,000 characters.
	maxPerWebhook = 150
	// maxNamedPerWebhook limits the rules in the URL of a webhook, because the
	// API server's error messages quote the URL.
	maxNamedPerWebhook = 20
)

// target is one entry in the match conditions of a webhook: an operation on one
// object, an operation on the clones of one rule, or the deletion of a
// namespace.
type target struct {
	// key identifies the request in CEL; namespace is that of a source.
	key, namespace string
	// override is the name of the rule whose override applies, or "" if only
	// the override for every rule applies.
	override string
	mode     spec.Mode
	// onlyDeletionCounts is true for updates that are denied only if they
	// amount to a deletion.
	onlyDeletionCounts bool
	// overrideGroup separates rules that guard the same namespace into
	// different webhooks, so that each override is checked on its own. It
	// starts at 1, and is 0 if no separation is needed.
	overrideGroup int
}

// sourceTargets returns the targets for sources that rules name, in a stable
// order.
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

// namespaceTargets returns the targets for guarded namespaces, in a stable
// order.
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

// cloneTargets returns the targets for clones of rules with clones: Deny.
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

// sortTargets sorts targets by override group and key. Of several targets with
// the same key in a group, it keeps the strictest.
func sortTargets(all []target) []target {
	slices.SortFunc(all, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.overrideGroup, b.overrideGroup), cmp.Compare(a.key, b.key), cmp.Compare(b.mode.Strictness(), a.mode.Strictness()))
	})
	return slices.CompactFunc(all, func(a, b target) bool { return a.overrideGroup == b.overrideGroup && a.key == b.key })
}

// groupTargets divides sorted targets with the given enforcement into one group
// for each webhook. No webhook checks the same namespace for two rules.
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

// scopeOf returns the scope of the webhook for group.
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

// sortedRules returns the rules sorted by name.
func sortedRules(set *rules.Set[spec.Rule]) []spec.Rule {
	return slices.SortedFunc(slices.Values(set.All()), func(a, b spec.Rule) int { return cmp.Compare(a.Name, b.Name) })
}
