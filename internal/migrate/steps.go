package migrate

import (
	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

const header = `# yaml-language-server: $schema=./headwater.schema.json
#
# Made by headwater migrate. Read it once: each rule says where it comes from, and
# what is not as it was. What is a comment reaches nothing until its comment signs
# are taken away.
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
