package migrate

import "strconv"

// Annotations of kubernetes-replicator (mittwald), on sources and on copies.
const (
	replicatorPrefix       = "replicator.v1.mittwald.de/"
	replicatorTo           = replicatorPrefix + "replicate-to"
	replicatorToMatching   = replicatorPrefix + "replicate-to-matching"
	replicatorFrom         = replicatorPrefix + "replicate-from"
	replicatorAllowed      = replicatorPrefix + "replication-allowed"
	replicatorAllowedNames = replicatorPrefix + "replication-allowed-namespaces"
	replicatorKeepOwners   = replicatorPrefix + "keep-owner-references"
	replicatorStripLabels  = replicatorPrefix + "strip-labels"
	replicatorOnce         = replicatorPrefix + "replicate-once"
	replicatorAt           = replicatorPrefix + "replicated-at"
	replicatorVersion      = replicatorPrefix + "replicated-from-version"
	replicatorKeys         = replicatorPrefix + "replicated-keys"
)

var replicatorKnown = []string{
	replicatorTo, replicatorToMatching, replicatorFrom, replicatorAllowed, replicatorAllowedNames, replicatorKeepOwners,
	replicatorStripLabels, replicatorOnce, replicatorAt, replicatorVersion, replicatorKeys,
}

// ofReplicator translates what o's annotations ask of kubernetes-replicator.
func ofReplicator(o Object, all objects) []finding {
	if from, pulls := o.Annotations[replicatorFrom]; pulls {
		return []finding{replicatedFrom(o, from, all)}
	}
	_, byName := o.Annotations[replicatorTo]
	_, byLabel := o.Annotations[replicatorToMatching]
	if byName || byLabel {
		return replicated(o)
	}
	return nil
}

// replicated is a source that is pushed to namespaces.
func replicated(o Object) []finding {
	base := finding{Tool: Replicator, From: o.String(), Source: sourceNamed(o.Ref)}
	remarks(&base, o)
	push := consent{patterns: listOf(o.Annotations[replicatorTo])}
	var err error
	if push.selector, err = selectorOf(o.Annotations[replicatorToMatching]); err != nil {
		base.lose("%s; it is left out", err)
	}
	_, asked := o.Annotations[replicatorToMatching]
	var terms []where
	if !push.all() {
		terms = push.terms(&base)
	} else if asked && err == nil { // an empty selector matches every namespace
		terms = []where{{}}
	}
	if len(terms) == 0 {
		base.off("no namespace is left to copy into; name those that are meant under sync.namespaces.include")
		terms = []where{nowhere()}
	}
	_, stripped := o.Annotations[replicatorStripLabels]
	return perTerm(base, terms, !stripped)
}

// remarks are about what has no counterpart.
func remarks(f *finding, o Object) {
	unknown(f, o.Annotations, replicatorPrefix, replicatorKnown...)
	if isTrue(o.Annotations[replicatorKeepOwners]) {
		f.note("owner references are not carried over: an owner in another namespace has the clone deleted by Kubernetes' garbage collector")
	}
	if isTrue(o.Annotations[replicatorOnce]) {
		f.off("%s is true: it is copied once and then left alone, and Headwater keeps its clones as their source is", replicatorOnce)
	}
}

// replicatedFrom is a copy that names its source.
func replicatedFrom(o Object, from string, all objects) finding {
	source, readable := referred(o.Kind, from)
	if !readable || source.Namespace == o.Namespace {
		f := finding{Tool: Replicator, From: o.String(), Source: sourceNamed(source)}
		f.off("%s is %q; a clone is in another namespace than its source, NAMESPACE/NAME", replicatorFrom, from)
		return f
	}
	f := pulled(Replicator, o, source)
	remarks(&f, o)
	original, known := all[source]
	permitted, err := strconv.ParseBool(original.Annotations[replicatorAllowed])
	switch {
	case !known:
		f.off("the source is not among what was read, so that it is not known whether it allows this; take the comment signs away if it does")
	case err != nil || !permitted:
		f.off("the source does not allow it: %s is not \"true\". If the replicator runs with --allow-all, take the comment signs away", replicatorAllowed)
	case !(consent{patterns: listOf(original.Annotations[replicatorAllowedNames])}).allows(o.Namespace):
		f.off("the source does not allow it: %s does not name %s. If the replicator runs with --allow-all, take the comment signs away",
			replicatorAllowedNames, o.Namespace)
	}
	return f
}
