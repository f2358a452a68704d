package migrate

import (
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// Annotations of Reflector (emberstack), on sources and on mirrors.
const (
	reflectorPrefix          = "reflector.v1.k8s.emberstack.com/"
	reflectorAllowed         = reflectorPrefix + "reflection-allowed"
	reflectorAllowedNames    = reflectorPrefix + "reflection-allowed-namespaces"
	reflectorAllowedSelector = reflectorPrefix + "reflection-allowed-namespaces-selector"
	reflectorAutoEnabled     = reflectorPrefix + "reflection-auto-enabled"
	reflectorAutoNames       = reflectorPrefix + "reflection-auto-namespaces"
	reflectorAutoSelector    = reflectorPrefix + "reflection-auto-namespaces-selector"
	reflectorReflects        = reflectorPrefix + "reflects"
	reflectorAuto            = reflectorPrefix + "auto-reflects"
	reflectorVersion         = reflectorPrefix + "reflected-version"
	reflectorAt              = reflectorPrefix + "reflected-at"
)

// ofReflector translates what o's annotations ask of Reflector.
func ofReflector(o Object, all objects) []finding {
	switch {
	case o.Annotations[reflectorReflects] != "":
		return reflecting(o, all)
	case isTrue(o.Annotations[reflectorAllowed]) && isTrue(o.Annotations[reflectorAutoEnabled]):
		return reflected(o)
	case isTrue(o.Annotations[reflectorAutoEnabled]):
		f := finding{Tool: Reflector, From: o.String(), Source: sourceNamed(o.Ref)}
		f.off("%s is true, but %s is not, so that Reflector copies it nowhere", reflectorAutoEnabled, reflectorAllowed)
		return []finding{f}
	default:
		return nil
	}
}

// reflected is a source that Reflector mirrors of its own accord.
func reflected(o Object) []finding {
	base := finding{Tool: Reflector, From: o.String(), Source: sourceNamed(o.Ref)}
	unknown(&base, o.Annotations, reflectorPrefix, reflectorAllowed, reflectorAllowedNames, reflectorAllowedSelector,
		reflectorAutoEnabled, reflectorAutoNames, reflectorAutoSelector, reflectorVersion, reflectorAt)
	allowed, err := reflectorConsent(o, reflectorAllowedNames, reflectorAllowedSelector)
	auto, autoErr := reflectorConsent(o, reflectorAutoNames, reflectorAutoSelector)
	var terms []where
	switch {
	case err != nil:
		base.off("%s", err)
	case autoErr != nil:
		base.off("%s", autoErr)
	default:
		terms = both(&base, allowed.terms(&base), auto.terms(&base))
	}
	if len(terms) == 0 {
		base.off("no namespace is left to copy into; name those that are meant under sync.namespaces.include")
		terms = []where{nowhere()}
	}
	return perTerm(base, terms, false)
}

// perTerm is base once for each alternative. No two of them select one namespace
// by what an earlier one selects by name.
func perTerm(base finding, terms []where, labels bool) []finding {
	var found []finding
	for _, term := range apart(terms) {
		f := base
		f.Notes = append([]string(nil), base.Notes...)
		f.Sync = &syncPart{Where: wideExclude(&f, term), CopyLabels: labels, OnSourceDeleted: syncspec.Delete}
		f.systemSource()
		found = append(found, f)
	}
	return found
}

func reflectorConsent(o Object, names, selector string) (consent, error) {
	parsed, err := selectorOf(o.Annotations[selector])
	return consent{patterns: listOf(o.Annotations[names]), selector: parsed, firstMatch: true}, err
}

// reflecting is a mirror that names its source.
func reflecting(o Object, all objects) []finding {
	source, readable := referred(o.Kind, o.Annotations[reflectorReflects])
	if !readable || source.Namespace == o.Namespace {
		f := finding{Tool: Reflector, From: o.String(), Source: sourceNamed(source)}
		f.off("%s is %q; a clone is in another namespace than its source, NAMESPACE/NAME", reflectorReflects, o.Annotations[reflectorReflects])
		return []finding{f}
	}
	f := pulled(Reflector, o, source)
	unknown(&f, o.Annotations, reflectorPrefix, reflectorReflects, reflectorAuto, reflectorVersion, reflectorAt)
	original, known := all[source]
	allowed, err := reflectorConsent(original, reflectorAllowedNames, reflectorAllowedSelector)
	switch {
	case !known:
		f.off("the source is not among what was read, so that it is not known whether it allows this; take the comment signs away if it does")
	case !isTrue(original.Annotations[reflectorAllowed]):
		f.off("the source does not allow it: %s is not \"true\"", reflectorAllowed)
	case err != nil:
		f.off("%s", err)
	case allowed.all() || allowed.allows(o.Namespace):
	case allowed.selector != nil:
		f.Sync.Where.Selector = allowed.selector
	default:
		f.off("the source does not allow it: %s does not name %s", reflectorAllowedNames, o.Namespace)
	}
	return []finding{f}
}
