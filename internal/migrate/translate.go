package migrate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

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
	// Others do other jobs, and stay with their tool.
	Others []string
	// Origins are what became of each thing that a tool was told.
	Origins []origin
	Unread  []ir.Unread
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
	// Notes say what is not as it was.
	Notes []ir.Reason
	// Off is why the rule is a comment; none: it is in force.
	Off ir.Reason
}

// Carried reports whether everything that was found is in force, except other jobs.
func (r Result) Carried() bool {
	return len(r.Left)+len(r.Unread) == 0 && !slices.ContainsFunc(r.Origins, func(o origin) bool { return !o.InForce || len(o.Why) > 0 })
}

// Empty reports whether nothing was found to translate in what could be read.
func (r Result) Empty() bool { return len(r.Rules) == 0 && len(r.Sections) == 0 && len(r.Left) == 0 }

// Translate is pure: the same input always gives the same result.
func Translate(in Input) Result {
	result := Result{Unread: in.Unread, Tools: map[ir.Tool]bool{}}
	var found []ir.Finding
	var names []string // of the policies that do one of the jobs
	addKyverno := func(of []ir.Finding, left []ir.Left, as ...string) {
		found = append(found, of...)
		before := len(result.Left)
		for _, l := range left {
			if l.Why.Cause == ir.OtherJob {
				result.Others = append(result.Others, l.From)
			} else {
				result.Left = append(result.Left, l)
			}
		}
		if len(of) > 0 || len(result.Left) > before {
			names = append(names, as...)
			result.Tools[ir.Kyverno] = true
		}
	}
	for _, policy := range in.Policies {
		of, left := kyverno.OfPolicy(policy)
		addKyverno(of, left, policy.Metadata.Name, policy.Metadata.Namespace+"/"+policy.Metadata.Name)
	}
	for _, policy := range in.CELPolicies {
		of, left := kyverno.OfCELPolicy(policy)
		addKyverno(of, left, policy.Metadata.Name)
	}
	result.Left = append(result.Left, kyverno.Excepted(names, in.Exceptions)...)
	result.Left = append(result.Left, in.Elsewhere...)
	all := annotations.Indexed(in.Objects)
	slices.SortFunc(in.Objects, func(a, b ir.Object) int { return strings.Compare(a.String(), b.String()) })
	for _, o := range in.Objects {
		if !annotations.IsClone(o) {
			found = append(found, annotations.OfReflector(o, all)...)
			found = append(found, annotations.OfReplicator(o, all)...)
		}
	}
	result.sum(found)
	b := builder{result: &result}
	for _, l := range result.Left {
		b.account(ir.Finding{From: l.From}, l.Why)
	}
	b.build(found)
	return result
}

// sum says what the tools of all findings do.
func (r *Result) sum(found []ir.Finding) {
	for _, f := range found {
		r.Tools[f.Tool] = true
		if f.Tool == ir.Kyverno {
			r.Clones, r.Denies, r.Restarts = r.Clones || f.Sync != nil, r.Denies || f.Protect != nil, r.Restarts || f.Reload != nil || f.Section != nil
		}
	}
}

// sourceToName stands for a namespace that the input does not say.
const sourceToName = "say-which-namespace"

// checked is f, without what a configuration cannot name.
func checked(f ir.Finding) ir.Finding {
	names := []string{f.Source.Namespace, f.Source.Name}
	if f.Sync != nil {
		names = append(names, f.Sync.TargetName)
	}
	if f.Sync == nil && f.Protect == nil && f.Reload == nil {
		return f
	}
	for _, name := range names {
		if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return ir.Finding{Tool: f.Tool, From: f.From, Off: ir.Because(ir.NotAName, name)}
		}
	}
	if f.Source.Namespace == "" && !f.Everywhere {
		f.Source.Namespace = sourceToName
		f.DisableFor(ir.Because(ir.NamespaceNotSaid, string(f.Source.Kind)+" "+f.Source.Name))
	}
	return f
}

const header = `# yaml-language-server: $schema=./headwater.schema.json
#
# Made by headwater migrate: %s.
# Read it once: each rule says where it comes from, and what is not as it was. What is
# a comment reaches nothing until its comment signs are taken away.
#
# In this order:
`

// steps are what to do with the file, and in which order, for the tools that
// were found.
func (r Result) steps() []string {
	steps := []string{
		"headwater check FILE, and headwater plan --config FILE: TakenOver are clones that stay as they are and only get Headwater's " +
			"marks; Missing are new ones; a Conflict differs from its source and is left alone. Where that is not what is meant, change " +
			"the rule. Back the objects up.",
	}
	if r.Clones {
		steps = append(steps, "Delete Kyverno's policies that clone, before Headwater runs: Kyverno puts back what somebody else writes "+
			"to its clones, marks included. Their clones stay, whatever orphanDownstreamOnPolicyDelete says: it is about policies that hold "+
			"the data themselves. Until then delete no source and change neither match nor namespaces: that would delete clones.")
	}
	if r.Denies {
		steps = append(steps, "A policy that denies changes of clones would deny Headwater's marks, too: exclude ServiceAccount headwater of "+
			"namespace headwater-system in it, or delete it now. One about sources alone may stay for the while.")
	}
	if r.Restarts {
		steps = append(steps, "Delete Kyverno's policies that restart before the next change of a source, or workloads restart twice.")
	}
	steps = append(steps, "Run Headwater with this file, and look at headwater status until every clone is CURRENT. Nothing restarts: what "+
		"is adopted has not changed.")
	if r.Denies {
		steps = append(steps, "Once headwater status says that the rules are proven to protect, delete Kyverno's policies that deny.")
	}
	if r.Clones {
		steps = append(steps, "Take the labels generate.kyverno.io/… off sources and clones, when it suits: Kyverno looks for the deleted policy "+
			"by them, and logs that it is gone.")
	}
	if r.Tools[ir.Reflector] {
		steps = append(steps, "Stop Reflector. Only then take its annotations off the sources: while it runs, it deletes the mirrors of a source "+
			"that loses them.")
	}
	if r.Tools[ir.Replicator] {
		steps = append(steps, "kubernetes-replicator copies Roles, RoleBindings and ServiceAccounts, too, which nothing here does: look for its "+
			"annotations on those first. Stop it before the next change of a source: it overwrites all labels of a copy, so that "+
			"Headwater has to put its mark back. Do not delete a source while it runs, which deletes its copies or empties them. Then remove its "+
			"annotations.")
	}
	return steps
}
