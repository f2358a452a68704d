package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/notify"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// takeNotes reports what is valid and probably a mistake. It is silent about
// what depends on the cluster. own is Headwater's namespace, if it is known.
func takeNotes(doc *document, config *Config, own string) {
	for i, rule := range config.Rules {
		at := field.NewPath("rules").Index(i)
		if rule.Sync != nil {
			noteNamespaces(doc, at.Child("sync", "namespaces"), rule.clonesTo(), "the rule clones")
			noteSource(doc, at.Child("source", "namespace"), rule.Source, own)
			noteStages(doc, at.Child("sync", "delivery", "stages"), rule)
		}
		if rule.Protect != nil && allowsNobody(rule.Protect.Allow) {
			doc.note(at.Child("protect", "allow"),
				"allows nobody: only Headwater and holders of the verb override may change the source")
		}
	}
	noteSharedPlaces(doc, config.Rules)
	for i, section := range config.Reload.Namespaces {
		noteSection(doc, field.NewPath("reload", "namespaces").Index(i), section)
	}
	noteReceivers(doc, config.Notify)
	at := field.NewPath("safety", "maxDeleteFraction")
	switch *config.Safety.MaxDeleteFraction {
	case 0:
		doc.note(at, "holds every removal of a clone until it is approved, that of a single one, too")
	case 1:
		doc.note(at, "never holds the removal of clones, however many go at once")
	}
}

func allowsNobody(allow protectspec.Allow) bool {
	return len(allow.ClusterRoles)+len(allow.Users)+len(allow.Groups)+len(allow.ServiceAccounts) == 0
}

// systemNamespaces are those of Kubernetes itself.
var systemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease"}

// chosen are namespaces as a section of the file chooses them. own, if any, is
// left out beside.
type chosen struct {
	rules.Namespaces

	own string
}

func (r Rule) clonesTo() chosen { return chosen{r.Sync.Namespaces, r.Source.Namespace} }

// noteNamespaces takes an empty exclude, an include that begins as the name of a
// system namespace does, and any selector for meant. does says what is done in
// the namespaces.
func noteNamespaces(doc *document, at *field.Path, in chosen, does string) {
	if !slices.ContainsFunc(in.Include, func(glob string) bool { return !in.excludes(glob) }) {
		what := "leaves"
		if in.own != "" {
			what = "and the source's own namespace leave"
		}
		doc.note(at.Child("include"), fmt.Sprintf("%s nowhere: exclude (%s) %s nothing of it", does, strings.Join(in.Exclude, ", "), what))
	}
	named := slices.ContainsFunc(in.Include, func(glob string) bool { return strings.HasPrefix(glob, "kube-") })
	if len(in.Exclude) == 0 || named || !allLabels(in.Namespaces) {
		return
	}
	reached := slices.DeleteFunc(slices.Clone(systemNamespaces), func(name string) bool {
		included := slices.ContainsFunc(in.Include, func(glob string) bool { return rules.Within(name, glob) })
		return !included || in.excludes(name)
	})
	if len(reached) > 0 {
		doc.note(at.Child("exclude"), fmt.Sprintf("takes the place of its default, kube-*: %s into %s; "+
			"add kube-*, or name them in include if that is meant", does, strings.Join(reached, ", ")))
	}
}

// noteSection reports what a section of reload.namespaces hardly means.
func noteSection(doc *document, at *field.Path, section reloadspec.NamespaceSection) {
	noteNamespaces(doc, at, chosen{Namespaces: section.Namespaces}, "the section reaches")
	objects := section.Objects
	if !slices.ContainsFunc(objects.Include, func(glob string) bool {
		return !slices.ContainsFunc(objects.Exclude, func(out string) bool { return rules.Within(glob, out) })
	}) {
		doc.note(at.Child("objects", "include"), fmt.Sprintf("the section is about no object: exclude (%s) leaves nothing of it",
			strings.Join(objects.Exclude, ", ")))
	}
}

// excludes reports whether no namespace that glob matches is chosen.
func (c chosen) excludes(glob string) bool {
	return glob == c.own && c.own != "" ||
		slices.ContainsFunc(c.Exclude, func(out string) bool { return rules.Within(glob, out) })
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
			if !a.clonesTo().excludes(narrow) && !b.clonesTo().excludes(narrow) {
				return true
			}
		}
	}
	return false
}

// noteStages reports stages that select nothing, namespaces of an earlier stage, or
// too short a time to see that a revision does harm.
func noteStages(doc *document, at *field.Path, rule Rule) {
	if rule.Sync.Delivery == nil {
		return
	}
	stages := rule.Sync.Delivery.Stages
	for i, stage := range stages {
		if stage.Namespaces != nil {
			noteStageNamespaces(doc, at.Index(i).Child("namespaces"), rule, i)
		}
		if rule.Sync.Delivery.Gate.Consumers == syncspec.GateHealthy && stage.Soak.Duration == 0 && !stage.Approval {
			doc.note(at.Index(i).Child("soak"), "the next stage starts as soon as the new pods are ready, "+
				"which is before a crash loop shows; write a soak, for example 5m")
		}
	}
}

// noteStageNamespaces reports if the stage of that index has fewer namespaces than
// it selects.
func noteStageNamespaces(doc *document, at *field.Path, rule Rule, index int) {
	stages := rule.Sync.Delivery.Stages
	theirs := stageNamespaces(stages[index])
	if !meet(Rule{Source: rule.Source, Sync: &syncspec.Config{Namespaces: withoutLabels(rule.Sync.Namespaces)}},
		Rule{Source: rule.Source, Sync: &syncspec.Config{Namespaces: withoutLabels(theirs)}}) {
		doc.note(at, "the stage selects nothing: the rule clones to none of these namespaces")
		return
	}
	for _, earlier := range stages[:index] {
		if earlier.Namespaces == nil {
			continue
		}
		first := stageNamespaces(earlier)
		if covers(first, theirs) {
			doc.note(at, fmt.Sprintf("the stage selects nothing: stage %s, which comes first, has all of these namespaces", earlier.Name))
			return
		}
		if overlap(first, theirs) {
			doc.note(at, fmt.Sprintf("a namespace that stage %s matches as well belongs to that stage, which comes first", earlier.Name))
		}
	}
}

// stageNamespaces returns which namespaces a stage takes of those of its rule.
func stageNamespaces(stage syncspec.Stage) rules.Namespaces {
	in := rules.Namespaces{Include: stage.Namespaces.Include, Selector: stage.Namespaces.Selector}
	if len(in.Include) == 0 {
		in.Include = []string{"*"}
	}
	return in
}

func withoutLabels(n rules.Namespaces) rules.Namespaces {
	n.Selector = nil
	return n
}

// covers reports whether all that b selects is surely selected by a.
func covers(a, b rules.Namespaces) bool {
	if !allLabels(a) && labelsOf(a) != labelsOf(b) {
		return false
	}
	return !slices.ContainsFunc(b.Include, func(glob string) bool {
		return !slices.ContainsFunc(a.Include, func(wider string) bool { return rules.Within(glob, wider) })
	})
}

// overlap reports whether a and b surely select a namespace of the same name, if their
// labels do.
func overlap(a, b rules.Namespaces) bool {
	if !allLabels(a) && !allLabels(b) && labelsOf(a) != labelsOf(b) {
		return false
	}
	return slices.ContainsFunc(a.Include, func(one string) bool {
		return slices.ContainsFunc(b.Include, func(other string) bool { return rules.Within(one, other) || rules.Within(other, one) })
	})
}

// noteSource reports a source in a namespace from which sync refuses to clone.
func noteSource(doc *document, at *field.Path, source rules.Source, own string) {
	switch {
	case source.Namespace == metav1.NamespaceSystem && !source.AllowSystemNamespace:
		doc.note(at, "the rule clones nothing: a source in kube-system is cloned only with allowSystemNamespace: true beside it")
	case own != "" && source.Namespace == own:
		doc.note(at, "the rule clones nothing: this is Headwater's own namespace, whose keys and certificates must not leave it; move the source to another namespace")
	}
}

// noteReceivers reports URLs that send a password in clear text.
func noteReceivers(doc *document, receivers []notify.Receiver) {
	for i, receiver := range receivers {
		if receiver.SendsPasswordInClear() {
			doc.note(field.NewPath("notify").Index(i).Child("url"), "sends the password of the URL without encryption; write https://")
		}
	}
}

// The ConfigMaps of Headwater's own namespace that hold a configuration, and the
// key under which they do.
const (
	// ConfigMapName names the ConfigMap that the chart makes, and that commands
	// read when no file is given.
	ConfigMapName = "headwater"
	// LastValidName names the copy of the last valid content of ConfigMapName.
	LastValidName = "headwater-last-valid"
	// ConfigMapKey is the key in both.
	ConfigMapKey = "headwater.yaml"
)
