package kyverno

import (
	"encoding/json"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// deny translates a rule that refuses changes.
func (p Policy) deny(from string, rule kyvernoRule, left []ir.Left) ([]ir.Finding, []ir.Left) {
	matched, err := rule.Match.alternatives()
	if err != nil {
		return nil, append(left, ir.Left{From: from, Why: ir.ReasonOf(err)})
	}
	before := len(left)
	var found []ir.Finding
	for _, f := range matched {
		covered := f.shared()
		if len(covered) == 0 {
			continue
		}
		sources, everywhere, err := p.covered(f, covered)
		if err != nil {
			left = append(left, ir.Left{From: from, Why: ir.ReasonOf(err)})
			continue
		}
		matching, never := rule.operations(f)
		operations, err := protectedOperations(matching, rule.Validate.Deny.Conditions)
		if never != nil {
			err = never
		}
		for _, source := range sources {
			one := ir.Finding{From: from, Source: source, Everywhere: everywhere, Protect: &ir.ProtectPart{
				Operations: operations, Mode: p.mode(rule), Message: rule.Validate.Message, Clones: protectspec.Revert,
			}}
			p.describe(&one, rule, f)
			one.DisableFor(err)
			found = append(found, one)
		}
	}
	if len(found) == 0 && len(left) == before {
		left = append(left, ir.Left{From: from, Why: ir.Because(ir.OtherJob)})
	}
	return found, left
}

// describe says who may, and what is different here.
func (p Policy) describe(f *ir.Finding, rule kyvernoRule, matched filter) {
	f.Protect.Allow = p.allow(f, rule)
	if hasVariable(f.Protect.Message) {
		f.Protect.Message = ""
		f.RecordLoss(ir.MessageLeft)
	}
	if len(rule.Validate.Overrides)+len(p.Spec.Overrides) > 0 {
		f.RecordLoss(ir.Overrides)
	}
	if matched.people() {
		f.Disable(ir.CertainUsers)
	}
	f.Note(ir.OverrideMay)
}

func (p Policy) mode(rule kyvernoRule) protectspec.Mode {
	action := rule.Validate.FailureAction
	if action == "" {
		action = p.Spec.ValidationFailureAction
	}
	switch {
	case strings.EqualFold(action, string(protectspec.Enforce)):
		return protectspec.Enforce
	case p.Spec.EmitWarning:
		return protectspec.Warn
	default:
		return protectspec.Audit
	}
}

// covered are the objects that the filter is about. everywhere is true when it
// names no namespace.
func (p Policy) covered(f filter, kinds []object.Kind) (sources []rules.Source, everywhere bool, err error) {
	r, namespaces, wild := f.Resources, p.placesOf(f), ""
	if all := slices.Concat(f.names(), namespaces); slices.ContainsFunc(all, isWild) {
		wild = all[slices.IndexFunc(all, isWild)]
	}
	err = ir.FirstOf(
		ir.If(len(r.Annotations) > 0 || r.NamespaceSelector != nil, ir.ByAnnotations),
		ir.If(wild != "", ir.ByWildcard, wild),
		ir.If(wildLabels(r.Selector), ir.WildcardLabels),
		ir.If(ir.PlainSelector(r.Selector) != nil && len(f.names()) > 0, ir.ByNameAndLabels),
		ir.If(len(namespaces) == 0 && len(f.names()) == 0, ir.EveryNamespace),
		ir.If(len(f.names()) == 0 && ir.PlainSelector(r.Selector) == nil, ir.EveryObject, strings.Join(namespaces, ", ")),
	)
	if err != nil {
		return nil, false, err
	}
	if everywhere = len(namespaces) == 0; everywhere {
		namespaces = []string{""}
	}
	for _, kind := range kinds {
		for _, namespace := range namespaces {
			sources = append(sources, f.sourcesIn(kind, namespace)...)
		}
	}
	return sources, everywhere, nil
}

// placesOf are the namespaces of the objects that f is about; none are all.
func (p Policy) placesOf(f filter) []string {
	named := f.Resources.Namespaces
	switch {
	case p.Kind == PolicyKind:
		return []string{p.Metadata.Namespace}
	case len(named) == 1 && named[0] == "*":
		return nil
	default:
		return named
	}
}

func (f filter) sourcesIn(kind object.Kind, namespace string) []rules.Source {
	if selector := ir.PlainSelector(f.Resources.Selector); selector != nil {
		return []rules.Source{{Kind: kind, Namespace: namespace, Selector: selector}}
	}
	var sources []rules.Source
	for _, name := range f.names() {
		sources = append(sources, rules.Source{Kind: kind, Namespace: namespace, Name: name})
	}
	return sources
}

// protectedOperations are those that are matched and that the conditions name.
func protectedOperations(matched []string, raw json.RawMessage) ([]protectspec.Operation, error) {
	named, err := conditioned(raw)
	if err != nil {
		return protectspec.Operations(), err
	}
	if len(matched) == 0 { // what Kyverno asks for where a rule does not say
		matched = append([]string{"CREATE", "UPDATE"}, named...)
	}
	var operations []protectspec.Operation
	for _, operation := range protectspec.Operations() {
		upper := strings.ToUpper(string(operation))
		if slices.Contains(matched, upper) && (named == nil || slices.Contains(named, upper)) {
			operations = append(operations, operation)
		}
	}
	if len(operations) == 0 {
		return protectspec.Operations(), ir.Because(ir.NoGuardedOperation)
	}
	return operations, nil
}

// allow returns the users that the rule exempts. It records users that a rule of
// Headwater cannot name: they are refused.
func (p Policy) allow(f *ir.Finding, rule kyvernoRule) protectspec.Allow {
	allow := protectspec.Allow{ClusterRoles: []string{}}
	excluded, all := rule.Exclude.filters()
	if all {
		f.RecordLoss(ir.ExemptsTogether)
		return allow
	}
	for _, x := range excluded {
		switch {
		case !x.people() && x.leavesOut(f.Source):
			f.Disable(ir.ExcludesObjects)
		case !x.people():
		case x.resources() && !x.onlyKinds(f.Source.Kind):
			f.RecordLoss(ir.ExemptsTogether)
		case countOf(x.Roles, x.ClusterRoles)+min(len(x.Subjects), 1) > 1:
			f.RecordLoss(ir.ExemptsTogether)
		default:
			x.exempt(f, &allow)
		}
	}
	return allow
}

func countOf(lists ...[]string) int {
	count := 0
	for _, list := range lists {
		count += min(len(list), 1)
	}
	return count
}

// leavesOut reports whether the filter, which asks for nobody, may match the
// source.
func (f filter) leavesOut(source rules.Source) bool {
	if !f.matchesKind(string(source.Kind)) {
		return false
	}
	other := func(patterns []string, name string) bool {
		return len(patterns) > 0 && name != "" && !slices.ContainsFunc(patterns, func(p string) bool { return isWild(p) || p == name })
	}
	return !other(f.names(), source.Name) && !other(f.Resources.Namespaces, source.Namespace)
}

// onlyKinds reports whether the filter asks nothing of an object of kind but
// its kind.
func (f filter) onlyKinds(kind object.Kind) bool {
	rest := f
	rest.Resources.Kinds = nil
	return !rest.resources() && f.matchesKind(string(kind))
}

// exempt adds the people of the filter that can be named here.
func (f filter) exempt(to *ir.Finding, allow *protectspec.Allow) {
	if len(f.ClusterRoles) > 0 {
		allow.ClusterRoles = append(allow.ClusterRoles, f.ClusterRoles...)
		to.Note(ir.ClusterRoleCounts)
	}
	for _, role := range f.Roles {
		to.RecordLoss(ir.RoleExempts, role)
	}
	for _, subject := range f.Subjects {
		switch {
		case isWild(subject.Name + subject.Namespace):
			to.RecordLoss(ir.WildcardSubject, subject.Kind, subject.Name)
		case subject.Kind == rbacv1.UserKind:
			allow.Users = append(allow.Users, subject.Name)
		case subject.Kind == rbacv1.GroupKind:
			allow.Groups = append(allow.Groups, subject.Name)
		case subject.Kind == rbacv1.ServiceAccountKind:
			allow.ServiceAccounts = append(allow.ServiceAccounts, protectspec.ServiceAccount{Namespace: subject.Namespace, Name: subject.Name})
		}
	}
}
