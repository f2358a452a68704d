package annotations

import (
	"strconv"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

// Annotations of kubernetes-replicator (mittwald), on sources and on copies.
const (
	ReplicatorPrefix       = "replicator.v1.mittwald.de/"
	replicatorTo           = ReplicatorPrefix + "replicate-to"
	replicatorToMatching   = ReplicatorPrefix + "replicate-to-matching"
	replicatorFrom         = ReplicatorPrefix + "replicate-from"
	replicatorAllowed      = ReplicatorPrefix + "replication-allowed"
	replicatorAllowedNames = ReplicatorPrefix + "replication-allowed-namespaces"
	replicatorKeepOwners   = ReplicatorPrefix + "keep-owner-references"
	replicatorStripLabels  = ReplicatorPrefix + "strip-labels"
	replicatorOnce         = ReplicatorPrefix + "replicate-once"
	replicatorAt           = ReplicatorPrefix + "replicated-at"
	replicatorVersion      = ReplicatorPrefix + "replicated-from-version"
	replicatorKeys         = ReplicatorPrefix + "replicated-keys"
)

var replicatorKnown = []string{
	replicatorTo, replicatorToMatching, replicatorFrom, replicatorAllowed, replicatorAllowedNames, replicatorKeepOwners,
	replicatorStripLabels, replicatorOnce, replicatorAt, replicatorVersion, replicatorKeys,
}

// OfReplicator translates what o's annotations ask of kubernetes-replicator.
func OfReplicator(o ir.Object, all objects) []ir.Finding {
	if from, pulls := o.Annotations[replicatorFrom]; pulls {
		return []ir.Finding{replicatedFrom(o, from, all)}
	}
	_, byName := o.Annotations[replicatorTo]
	_, byLabel := o.Annotations[replicatorToMatching]
	if byName || byLabel {
		return replicated(o)
	}
	return nil
}

// replicated is a source that is pushed to namespaces.
func replicated(o ir.Object) []ir.Finding {
	base := ir.Finding{Tool: ir.Replicator, From: o.String(), Source: ir.SourceNamed(o.Ref)}
	remarks(&base, o)
	push := consent{patterns: listOf(o.Annotations[replicatorTo])}
	var err error
	if push.selector, err = selectorOf(o.Annotations[replicatorToMatching]); err != nil {
		base.RecordLoss("%s; it is left out", err)
	}
	_, asked := o.Annotations[replicatorToMatching]
	var terms []ir.Where
	if !push.all() {
		terms = push.terms(&base)
	} else if asked && err == nil { // an empty selector matches every namespace
		terms = []ir.Where{{}}
	}
	if len(terms) == 0 {
		base.Disable("no namespace is left to copy into; name those that are meant under sync.namespaces.include")
		terms = []ir.Where{ir.Nowhere()}
	}
	_, stripped := o.Annotations[replicatorStripLabels]
	return perTerm(base, terms, !stripped)
}

// remarks are about what has no counterpart.
func remarks(f *ir.Finding, o ir.Object) {
	unknown(f, o.Annotations, ReplicatorPrefix, replicatorKnown...)
	if ir.IsTrue(o.Annotations[replicatorKeepOwners]) {
		f.Note("owner references are not carried over: an owner in another namespace has the clone deleted by Kubernetes' garbage collector")
	}
	if ir.IsTrue(o.Annotations[replicatorOnce]) {
		f.Disable("%s is true: it is copied once and then left alone, and Headwater keeps its clones as their source is", replicatorOnce)
	}
}

// replicatedFrom is a copy that names its source.
func replicatedFrom(o ir.Object, from string, all objects) ir.Finding {
	source, readable := referred(o.Kind, from)
	if !readable || source.Namespace == o.Namespace {
		f := ir.Finding{Tool: ir.Replicator, From: o.String(), Source: ir.SourceNamed(source)}
		f.Disable("%s is %q; a clone is in another namespace than its source, NAMESPACE/NAME", replicatorFrom, from)
		return f
	}
	f := pulled(ir.Replicator, o, source)
	remarks(&f, o)
	original, known := all[source]
	permitted, err := strconv.ParseBool(original.Annotations[replicatorAllowed])
	switch {
	case !known:
		f.Disable("the source is not among what was read, so that it is not known whether it allows this; take the comment signs away if it does")
	case err != nil || !permitted:
		f.Disable("the source does not allow it: %s is not \"true\". If the replicator runs with --allow-all, take the comment signs away", replicatorAllowed)
	case !(consent{patterns: listOf(original.Annotations[replicatorAllowedNames])}).allows(o.Namespace):
		f.Disable("the source does not allow it: %s does not name %s. If the replicator runs with --allow-all, take the comment signs away",
			replicatorAllowedNames, o.Namespace)
	}
	return f
}
