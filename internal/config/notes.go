package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect"
)

// takeNotes has doc tell of what is valid and hardly meant. It is silent about
// what depends on the cluster.
func takeNotes(doc *document, config *Config) {
	for i, rule := range config.Rules {
		at := field.NewPath("rules").Index(i)
		if rule.Sync != nil {
			noteNamespaces(doc, at.Child("sync", "namespaces"), rule)
		}
		if rule.Protect != nil && allowsNobody(rule.Protect.Allow) {
			doc.note(at.Child("protect", "allow"),
				"allows nobody: only Headwater and holders of the verb override may change the source")
		}
	}
	noteSharedPlaces(doc, config.Rules)
	at := field.NewPath("safety", "maxDeleteFraction")
	switch *config.Safety.MaxDeleteFraction {
	case 0:
		doc.note(at, "holds every removal of a clone until it is approved, that of a single one, too")
	case 1:
		doc.note(at, "never holds the removal of clones, however many go at once")
	}
}

func allowsNobody(allow protect.Allow) bool {
	return len(allow.ClusterRoles)+len(allow.Users)+len(allow.Groups)+len(allow.ServiceAccounts) == 0
}

// systemNamespaces are those of Kubernetes itself.
var systemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease"}

// noteNamespaces takes an empty exclude, an include that begins as the name of a
// system namespace does, and any selector for meant.
func noteNamespaces(doc *document, at *field.Path, rule Rule) {
	chosen := rule.Sync.Namespaces
	if !slices.ContainsFunc(chosen.Include, func(glob string) bool { return !excluded(glob, rule) }) {
		doc.note(at.Child("include"), fmt.Sprintf("the rule clones nowhere: exclude (%s) and the source's own namespace leave nothing of it",
			strings.Join(chosen.Exclude, ", ")))
	}
	named := slices.ContainsFunc(chosen.Include, func(glob string) bool { return strings.HasPrefix(glob, "kube-") })
	if len(chosen.Exclude) == 0 || named || !allLabels(chosen) {
		return
	}
	reached := slices.DeleteFunc(slices.Clone(systemNamespaces), func(name string) bool {
		included := slices.ContainsFunc(chosen.Include, func(glob string) bool { return rules.Within(name, glob) })
		return !included || excluded(name, rule)
	})
	if len(reached) > 0 {
		doc.note(at.Child("exclude"), fmt.Sprintf("takes the place of its default, kube-*: the rule clones into %s; "+
			"add kube-*, or name them in include if that is meant", strings.Join(reached, ", ")))
	}
}

// excluded reports whether rule surely clones into no namespace that glob
// matches.
func excluded(glob string, rule Rule) bool {
	return glob == rule.Source.Namespace ||
		slices.ContainsFunc(rule.Sync.Namespaces.Exclude, func(out string) bool { return rules.Within(glob, out) })
}

func allLabels(n rules.Namespaces) bool { return labelsOf(n) == labelsOf(rules.Namespaces{}) }

func labelsOf(n rules.Namespaces) string { return metav1.FormatLabelSelector(n.Selector) }

// noteSharedPlaces tells of rules that want the same places as one before them.
func noteSharedPlaces(doc *document, all []Rule) {
	type name struct {
		kind object.Kind
		name string
	}
	before := map[name][]int{}
	for i, rule := range all {
		if rule.Sync == nil || rule.Source.Selector != nil {
			continue
		}
		clone := name{rule.Source.Kind, cmp.Or(rule.Sync.Target.Name, rule.Source.Name)}
		if at := slices.IndexFunc(before[clone], func(first int) bool { return meet(all[first], rule) }); at >= 0 {
			first := before[clone][at]
			doc.note(field.NewPath("rules").Index(i).Child("sync"), fmt.Sprintf(
				"rule %s in line %d comes first where both clone a %s named %s into one namespace; "+
					"keep their namespaces apart, or give one another target.name",
				all[first].Name, doc.line(field.NewPath("rules").Index(first).String()), clone.kind, clone.name))
		}
		before[clone] = append(before[clone], i)
	}
}

// meet reports whether there are namespaces, as far as names and labels tell,
// that a and b surely both clone into.
func meet(a, b Rule) bool {
	theirs, others := a.Sync.Namespaces, b.Sync.Namespaces
	if !allLabels(theirs) && !allLabels(others) && labelsOf(theirs) != labelsOf(others) {
		return false
	}
	for _, glob := range theirs.Include {
		for _, other := range others.Include {
			narrow := glob
			if rules.Within(other, glob) {
				narrow = other
			} else if !rules.Within(glob, other) {
				continue
			}
			if !excluded(narrow, a) && !excluded(narrow, b) {
				return true
			}
		}
	}
	return false
}
