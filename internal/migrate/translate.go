package migrate

import (
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/migrate/annotations"
	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/migrate/kyverno"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Result is what came of an Input.
type Result struct {
	// Rules are in the order of the file.
	Rules []migratedRule
	// Sections are those of reload.namespaces.
	Sections []migratedSection
	// Left is what no rule says, not even one that is a comment.
	Left []ir.Left
	// Unread is what could not be read, at FILE:LINE.
	Unread []ir.Left
	// Tools are those that something was found of.
	Tools map[ir.Tool]bool
	// Jobs tell which of Kyverno's jobs were found.
	Clones, Denies, Restarts bool
}

// migratedRule is one of Headwater's rules, put together of what tools say about one
// source.
type migratedRule struct {
	Name    string
	From    []string
	Source  rules.Source
	Sync    *ir.SyncPart
	Protect *ir.ProtectPart
	Reload  *ir.ReloadPart
	// Notes say what is not as it was; Less, that some of it is left out.
	Notes []string
	Less  bool
	// Off is why the rule is a comment; empty: it is in force.
	Off string
}

// Carried reports whether everything that was found is in force.
func (r Result) Carried() bool {
	return len(r.Left)+len(r.Unread) == 0 && !slices.ContainsFunc(r.Rules, func(rule migratedRule) bool {
		return rule.Off != "" || rule.Less || rule.Reload != nil && rule.Reload.Off != ""
	}) && !slices.ContainsFunc(r.Sections, func(section migratedSection) bool { return section.Off != "" })
}

// Empty reports whether nothing was found of any tool in what could be read.
func (r Result) Empty() bool { return len(r.Rules) == 0 && len(r.Sections) == 0 && len(r.Left) == 0 }

// Translate is pure: the same input always gives the same result.
func Translate(in Input) Result {
	result := Result{Unread: in.Unread, Tools: map[ir.Tool]bool{}}
	var found []ir.Finding
	addKyverno := func(of []ir.Finding, left []ir.Left) {
		found = append(found, of...)
		result.Left = append(result.Left, left...)
		result.Tools[ir.Kyverno] = result.Tools[ir.Kyverno] || len(of)+len(left) > 0
	}
	for _, policy := range in.Policies {
		addKyverno(kyverno.OfPolicy(policy))
	}
	for _, policy := range in.CELPolicies {
		addKyverno(kyverno.OfCELPolicy(policy))
	}
	result.Left = append(result.Left, kyverno.Excepted(in.Policies, in.CELPolicies, in.Exceptions)...)
	result.Left = append(result.Left, in.Elsewhere...)
	all := annotations.Indexed(in.Objects)
	slices.SortFunc(in.Objects, func(a, b ir.Object) int { return strings.Compare(a.String(), b.String()) })
	for _, o := range in.Objects {
		if !annotations.IsClone(o) {
			found = append(found, annotations.OfReflector(o, all)...)
			found = append(found, annotations.OfReplicator(o, all)...)
		}
	}
	for _, f := range found {
		result.Tools[f.Tool] = true
		if f.Tool == ir.Kyverno {
			result.Clones, result.Denies, result.Restarts = result.Clones || f.Sync != nil, result.Denies || f.Protect != nil, result.Restarts || f.Reload != nil || f.Section != nil
		}
	}
	b := builder{result: &result}
	b.build(found)
	return result
}
