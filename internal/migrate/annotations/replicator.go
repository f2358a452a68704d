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
		base.RecordLoss(ir.BadSelector, strconv.Quote(o.Annotations[replicatorToMatching]))
	}
	_, asked := o.Annotations[replicatorToMatching]
	var terms []ir.Where
	if !push.all() {
		terms = push.terms(&base)
	} else if asked && err == nil { // an empty selector matches every namespace
		terms = []ir.Where{{}}
	}
	if len(terms) == 0 {
		base.Disable(ir.NowhereLeft)
		terms = []ir.Where{ir.Nowhere()}
	}
	_, stripped := o.Annotations[replicatorStripLabels]
	return perTerm(base, terms, !stripped)
}

// remarks are about what has no counterpart.
func remarks(f *ir.Finding, o ir.Object) {
	unknown(f, o.Annotations, ReplicatorPrefix, replicatorKnown...)
	if ir.IsTrue(o.Annotations[replicatorKeepOwners]) {
		f.Note(ir.OwnersLeft)
	}
	if ir.IsTrue(o.Annotations[replicatorOnce]) {
		f.Disable(ir.CopiedOnce, replicatorOnce)
	}
}

// replicatedFrom is a copy that names its source.
func replicatedFrom(o ir.Object, from string, all objects) ir.Finding {
	source, readable := referred(o.Kind, from)
	if !readable || source.Namespace == o.Namespace {
		f := ir.Finding{Tool: ir.Replicator, From: o.String(), Source: ir.SourceNamed(source)}
		f.Disable(ir.BadReference, replicatorFrom, strconv.Quote(from))
		return f
	}
	f := pulled(ir.Replicator, o, source)
	remarks(&f, o)
	original, known := all[source]
	permitted, err := strconv.ParseBool(original.Annotations[replicatorAllowed])
	switch {
	case !known:
		f.Disable(ir.SourceNotRead)
	case err != nil || !permitted:
		f.DisableFor(ir.Because(ir.SourceForbids, replicatorAllowed).Advise(ir.AllowAll))
	case !(consent{patterns: listOf(original.Annotations[replicatorAllowedNames])}).allows(o.Namespace):
		f.DisableFor(ir.Because(ir.SourceForbidsIn, replicatorAllowedNames, o.Namespace).Advise(ir.AllowAll))
	}
	return f
}
