package annotations

import (
	"slices"
	"strconv"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// Annotations of Reflector (emberstack), on sources and on mirrors.
const (
	ReflectorPrefix          = "reflector.v1.k8s.emberstack.com/"
	reflectorAllowed         = ReflectorPrefix + "reflection-allowed"
	reflectorAllowedNames    = ReflectorPrefix + "reflection-allowed-namespaces"
	reflectorAllowedSelector = ReflectorPrefix + "reflection-allowed-namespaces-selector"
	reflectorAutoEnabled     = ReflectorPrefix + "reflection-auto-enabled"
	reflectorAutoNames       = ReflectorPrefix + "reflection-auto-namespaces"
	reflectorAutoSelector    = ReflectorPrefix + "reflection-auto-namespaces-selector"
	reflectorReflects        = ReflectorPrefix + "reflects"
	reflectorAuto            = ReflectorPrefix + "auto-reflects"
	reflectorVersion         = ReflectorPrefix + "reflected-version"
	reflectorAt              = ReflectorPrefix + "reflected-at"
)

// OfReflector translates what o's annotations ask of Reflector.
func OfReflector(o ir.Object, all objects) []ir.Finding {
	switch {
	case o.Annotations[reflectorReflects] != "":
		return reflecting(o, all)
	case ir.IsTrue(o.Annotations[reflectorAllowed]) && ir.IsTrue(o.Annotations[reflectorAutoEnabled]):
		return reflected(o)
	case ir.IsTrue(o.Annotations[reflectorAutoEnabled]):
		f := ir.Finding{Tool: ir.Reflector, From: o.String(), Source: ir.SourceNamed(o.Ref)}
		f.Disable(ir.NotAllowed, reflectorAutoEnabled, reflectorAllowed)
		return []ir.Finding{f}
	default:
		return nil
	}
}

// reflected is a source that Reflector mirrors of its own accord.
func reflected(o ir.Object) []ir.Finding {
	base := ir.Finding{Tool: ir.Reflector, From: o.String(), Source: ir.SourceNamed(o.Ref)}
	unknown(&base, o.Annotations, ReflectorPrefix, reflectorAllowed, reflectorAllowedNames, reflectorAllowedSelector,
		reflectorAutoEnabled, reflectorAutoNames, reflectorAutoSelector, reflectorVersion, reflectorAt)
	allowed, err := reflectorConsent(o, reflectorAllowedNames, reflectorAllowedSelector)
	auto, autoErr := reflectorConsent(o, reflectorAutoNames, reflectorAutoSelector)
	var terms []ir.Where
	switch {
	case err != nil:
		base.DisableFor(err)
	case autoErr != nil:
		base.DisableFor(autoErr)
	default:
		terms = both(&base, allowed.terms(&base), auto.terms(&base))
	}
	if len(terms) == 0 {
		base.Disable(ir.NowhereLeft)
		terms = []ir.Where{ir.Nowhere()}
	}
	return perTerm(base, terms, false)
}

// perTerm is base once for each alternative. No two of them select one namespace
// by what an earlier one selects by name.
func perTerm(base ir.Finding, terms []ir.Where, labels bool) []ir.Finding {
	var found []ir.Finding
	for _, term := range apart(terms) {
		f := base
		f.Notes = slices.Clone(base.Notes)
		f.Sync = &ir.SyncPart{Where: wideExclude(&f, term), CopyLabels: labels, OnSourceDeleted: syncspec.Delete}
		f.SystemSource()
		found = append(found, f)
	}
	return found
}

func reflectorConsent(o ir.Object, names, selector string) (consent, error) {
	parsed, err := selectorOf(o.Annotations[selector])
	return consent{patterns: listOf(o.Annotations[names]), selector: parsed, firstMatch: true}, err
}

// reflecting is a mirror that names its source.
func reflecting(o ir.Object, all objects) []ir.Finding {
	source, readable := referred(o.Kind, o.Annotations[reflectorReflects])
	if !readable || source.Namespace == o.Namespace {
		f := ir.Finding{Tool: ir.Reflector, From: o.String(), Source: ir.SourceNamed(source)}
		f.Disable(ir.BadReference, reflectorReflects, strconv.Quote(o.Annotations[reflectorReflects]))
		return []ir.Finding{f}
	}
	f := pulled(ir.Reflector, o, source)
	unknown(&f, o.Annotations, ReflectorPrefix, reflectorReflects, reflectorAuto, reflectorVersion, reflectorAt)
	original, known := all[source]
	allowed, err := reflectorConsent(original, reflectorAllowedNames, reflectorAllowedSelector)
	switch {
	case !known:
		f.Disable(ir.SourceNotRead)
	case !ir.IsTrue(original.Annotations[reflectorAllowed]):
		f.Disable(ir.SourceForbids, reflectorAllowed)
	case err != nil:
		f.DisableFor(err)
	case allowed.all() || allowed.allows(o.Namespace):
	case allowed.selector != nil:
		f.Sync.Where.Selector = allowed.selector
	default:
		f.Disable(ir.SourceForbidsIn, reflectorAllowedNames, o.Namespace)
	}
	return []ir.Finding{f}
}
