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
	"github.com/headwater-k8s/headwater/internal/stages"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// takeNotes reports what is valid and probably a mistake. It is silent about
// what depends on the cluster. own is Headwater's namespace, if it is known.
func takeNotes(doc *document, config *Config, own string) {
	doc.comparisons = maxComparisons
	for i, rule := range config.Rules {
		at := field.NewPath("rules").Index(i)
		if rule.Suspend {
			doc.note(at.Child("suspend"), "nothing is written for the rule, neither clones nor consumers; it still protects")
		}
		if rule.Sync != nil {
			noteNamespaces(doc, at.Child("sync", "namespaces"), rule.clonesTo(), "the rule clones")
			noteSource(doc, at.Child("source", "namespace"), rule.Source, own)
			noteDelivery(doc, at.Child("sync", "delivery"), rule)
			noteFraction(doc, at.Child("sync", "maxDeleteFraction"), rule.Sync.MaxDeleteFraction)
		}
		if rule.Protect != nil && allowsNobody(rule.Protect.Allow) {
			doc.note(at.Child("protect", "allow"),
				"allows nobody: only Headwater and holders of the verb override may change the source")
		}
		noteClusterRoles(doc, at.Child("protect", "allow", "clusterRoles"), rule)
	}
	noteSharedPlaces(doc, config.Rules)
	for i, section := range config.Reload.Namespaces {
		noteSection(doc, field.NewPath("reload", "namespaces").Index(i), section)
	}
	noteReceivers(doc, config.Notify)
	noteFraction(doc, field.NewPath("safety", "maxDeleteFraction"), config.Safety.MaxDeleteFraction)
	if doc.comparisons < 0 {
		doc.comparisons = 0
		doc.note(nil, "the file has too many rules and namespaces to compare all of them, so there may be more notes")
	}
}

func noteFraction(doc *document, at *field.Path, fraction *float64) {
	switch {
	case fraction == nil:
	case *fraction == 0:
		doc.note(at, "holds every removal of a clone until it is approved, that of a single one, too")
	case *fraction == 1:
		doc.note(at, "never holds the removal of clones, however many go at once")
	}
}

const (
	// maxComparisons limits how many pairs of globs are compared for notes, costOfPair
	// is what a pair of rules counts for.
	maxComparisons = 1_000_000
	costOfPair     = 20
	// costlyLengths is the product of the lengths of two globs from which on comparing
	// them counts more than once.
	costlyLengths = 4096
)

// within is rules.Within. Once there were too many comparisons it is false, and there
// are no more notes.
func (d *document) within(inner, outer string) bool {
	d.comparisons -= 1 + len(inner)*len(outer)/costlyLengths
	return d.comparisons >= 0 && rules.Within(inner, outer)
}

// noteClusterRoles notes ClusterRoles that others than cluster-admins may hold. The API
// server lets a user bind a ClusterRole whose rules the user holds.
func noteClusterRoles(doc *document, at *field.Path, rule Rule) {
	if rule.Protect == nil {
		return
	}
	for i, role := range rule.Protect.Allow.ClusterRoles {
		if role != "cluster-admin" {
			doc.note(at.Index(i), fmt.Sprintf("a user who may write ClusterRoleBindings and holds all that ClusterRole %s grants can bind it to themselves, "+
				"which is easy if it grants little; `headwater who-can-edit %s` lists them", role, rule.Name))
		}
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
	if !slices.ContainsFunc(in.Include, func(glob string) bool { return !in.excludes(doc, glob) }) {
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
		included := slices.ContainsFunc(in.Include, func(glob string) bool { return doc.within(name, glob) })
		return !included || in.excludes(doc, name)
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
		return !slices.ContainsFunc(objects.Exclude, func(out string) bool { return doc.within(glob, out) })
	}) {
		doc.note(at.Child("objects", "include"), fmt.Sprintf("the section is about no object: exclude (%s) leaves nothing of it",
			strings.Join(objects.Exclude, ", ")))
	}
}

// excludes reports whether no namespace that glob matches is chosen.
func (c chosen) excludes(doc *document, glob string) bool {
	return glob == c.own && c.own != "" ||
		slices.ContainsFunc(c.Exclude, func(out string) bool { return doc.within(glob, out) })
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
		if at := slices.IndexFunc(before[clone], func(first int) bool { return meet(doc, all[first], rule) }); at >= 0 {
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
func meet(doc *document, a, b Rule) bool {
	if doc.comparisons -= costOfPair; doc.comparisons < 0 {
		return false
	}
	theirs, others := a.Sync.Namespaces, b.Sync.Namespaces
	if !allLabels(theirs) && !allLabels(others) && labelsOf(theirs) != labelsOf(others) {
		return false
	}
	for _, glob := range theirs.Include {
		for _, other := range others.Include {
			narrow := glob
			if doc.within(other, glob) {
				narrow = other
			} else if !doc.within(glob, other) {
				continue
			}
			if !a.clonesTo().excludes(doc, narrow) && !b.clonesTo().excludes(doc, narrow) {
				return true
			}
		}
	}
	return false
}

// noteDelivery reports stages that select nothing, or namespaces of an earlier stage, and
// a first stage that proves little.
func noteDelivery(doc *document, at *field.Path, rule Rule) {
	delivery := rule.Sync.Delivery
	if delivery == nil {
		return
	}
	if gate := at.Child("gate", "consumers"); delivery.Gate.Consumers == stages.GateNone && doc.lines[gate.String()] == 0 {
		doc.note(gate, "without a reload section nobody looks at consumers, so the gate is None: only time passes between the stages; add reload: {}, or write None")
	}
	for i, stage := range delivery.Stages {
		if stage.Namespaces != nil {
			noteStageNamespaces(doc, at.Child("stages").Index(i).Child("namespaces"), rule, i)
		}
	}
	if len(delivery.Stages) == 0 || delivery.Gate.Consumers != stages.GateHealthy {
		return
	}
	first, path := delivery.Stages[0], at.Child("stages").Index(0)
	if first.Soak.Duration == 0 && !first.Approval {
		doc.note(path.Child("soak"), "the next stage starts as soon as the new pods are ready, "+
			"which is before a crash loop shows; write a soak, for example 5m")
	}
	if !first.Restart && doc.lines[path.Child("restart").String()] == 0 {
		doc.note(path.Child("restart"), "a consumer that only mounts the object is not restarted, so this stage does not show whether it starts with a new value; write restart: true, or false if that is enough")
	}
}

// noteStageNamespaces reports if the stage of that index has fewer namespaces than
// it selects.
func noteStageNamespaces(doc *document, at *field.Path, rule Rule, index int) {
	all := rule.Sync.Delivery.Stages
	theirs := stageNamespaces(all[index])
	if !meet(doc, Rule{Source: rule.Source, Sync: &syncspec.Config{Namespaces: withoutLabels(rule.Sync.Namespaces)}},
		Rule{Source: rule.Source, Sync: &syncspec.Config{Namespaces: withoutLabels(theirs)}}) {
		doc.note(at, "the stage selects nothing: the rule clones to none of these namespaces")
		return
	}
	for _, earlier := range all[:index] {
		if earlier.Namespaces == nil {
			continue
		}
		first := stageNamespaces(earlier)
		if covers(doc, first, theirs) {
			doc.note(at, fmt.Sprintf("the stage selects nothing: stage %s, which comes first, has all of these namespaces", earlier.Name))
			return
		}
		if overlap(doc, first, theirs) {
			doc.note(at, fmt.Sprintf("a namespace that stage %s matches as well belongs to that stage, which comes first", earlier.Name))
		}
	}
}

// stageNamespaces returns which namespaces a stage takes of those of its rule.
func stageNamespaces(stage stages.Stage) rules.Namespaces {
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
func covers(doc *document, a, b rules.Namespaces) bool {
	if !allLabels(a) && labelsOf(a) != labelsOf(b) {
		return false
	}
	return !slices.ContainsFunc(b.Include, func(glob string) bool {
		return !slices.ContainsFunc(a.Include, func(wider string) bool { return doc.within(glob, wider) })
	})
}

// overlap reports whether a and b surely select a namespace of the same name, if their
// labels do.
func overlap(doc *document, a, b rules.Namespaces) bool {
	if !allLabels(a) && !allLabels(b) && labelsOf(a) != labelsOf(b) {
		return false
	}
	return slices.ContainsFunc(a.Include, func(one string) bool {
		return slices.ContainsFunc(b.Include, func(other string) bool { return doc.within(one, other) || doc.within(other, one) })
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

// The objects of Headwater's own namespace that hold a configuration, and the key under
// which they do.
const (
	// ConfigMapName names the ConfigMap that the chart makes, and that commands
	// read when no file is given.
	ConfigMapName = "headwater"
	// LastValidName names the Secret with the configuration in force. Earlier versions
	// stored it in a ConfigMap of that name.
	LastValidName = "headwater-last-valid"
	// ConfigMapKey is the key in both.
	ConfigMapKey = "headwater.yaml"
)
