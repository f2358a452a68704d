package migrate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// rolled are the kinds of workload that a rule of Headwater restarts.
var rolled = []string{"Deployment", "StatefulSet", "DaemonSet"}

// mutate translates a rule that restarts workloads when a Secret or ConfigMap
// changes.
func (p Policy) mutate(from string, rule kyvernoRule, left []Left) ([]finding, []Left) {
	matched, err := rule.Match.alternatives()
	if err == nil && rule.Mutate.annotatesPods() {
		return p.sections(from, rule, matched, left)
	}
	if err := cmp.Or(rule.Mutate.stamps(), err); err != nil {
		return nil, append(left, Left{from, err.Error()})
	}
	var found []finding
	for _, f := range matched {
		of, more := p.restarts(from, rule, f)
		found, left = append(found, of...), append(left, more...)
	}
	return found, left
}

// restarts translates a rule that restarts workloads when an object changes that f
// selects.
func (p Policy) restarts(from string, rule kyvernoRule, f filter) (found []finding, left []Left) {
	kinds := f.shared()
	if len(kinds) == 0 {
		return nil, []Left{{from, "it is not triggered by a Secret or ConfigMap"}}
	}
	sources, everywhere, err := p.covered(f, kinds)
	if err != nil {
		if one, err := p.sectionOfWorkloads(from, rule, f); err == nil {
			return []finding{one}, nil
		}
		return nil, []Left{{from, fmt.Sprintf("%s. Have the owners of workloads ask: annotation %s: Restart", err, mark.Reload)}}
	}
	for _, source := range sources {
		one := finding{From: from, Source: source, Everywhere: everywhere}
		named, kinds := rule.Mutate.toRestart(&one)
		if named > 0 {
			left = append(left, namedTargets(from, rule.Mutate, source.Kind, source.Name)...)
		}
		if len(kinds) == 0 {
			if named == 0 {
				left = append(left, Left{from, strings.Join(one.Notes, "; ")})
			}
			continue
		}
		rule.Mutate.only(&one, kinds)
		if err := f.dependsOnMore(rule); err != nil {
			one.off("%s", err)
		}
		found = append(found, one)
	}
	return found, left
}

// dependsOnMore is why a restart depends on more than that the data changes.
func (f filter) dependsOnMore(rule kyvernoRule) error {
	excluded, _ := rule.Exclude.filters()
	operations, never := rule.operations(f)
	return firstOf(
		doubt{never != nil, "its preconditions hold for none of its operations"},
		doubt{len(excluded) > 0 || f.people(), "it makes a difference who changes the object, or excludes some; a rule here looks at the data alone"},
		doubt{len(operations) > 0 && !slices.Contains(operations, "UPDATE"), "it restarts when the object is made or deleted, and a rule here when it changes"},
	)
}

// stamps is nil if the patch puts annotations on a pod template.
func (m mutation) stamps() error {
	var patch struct {
		Spec struct {
			Template struct {
				Metadata struct {
					Annotations map[string]any `json:"annotations"`
				} `json:"metadata"`
			} `json:"template"`
		} `json:"spec"`
	}
	switch {
	case json.Unmarshal(m.StrategicMerge, &patch) == nil && len(patch.Spec.Template.Metadata.Annotations) > 0:
		return nil
	case strings.Contains(m.JSON6902, "/spec/template/metadata/annotations"):
		return nil
	case given(m.ForEach):
		return errors.New("it changes workloads by foreach, which is not read; if that restarts them, give the rule of the object a reload section")
	case slices.ContainsFunc(m.Targets, func(target mutated) bool { return target.Kind == "Pod" }):
		return errors.New("it changes pods. If that has their volumes refreshed, write a section of reload.namespaces with action: Refresh")
	default:
		return errors.New("it does not put an annotation on pod templates, which is what restarts")
	}
}

// sectionOfWorkloads is a section for a rule that restarts workloads that it does
// not name for objects that are no source.
func (p Policy) sectionOfWorkloads(from string, rule kyvernoRule, f filter) (finding, error) {
	var kinds []string
	for _, target := range rule.Mutate.Targets {
		if target.named() || !slices.Contains(rolled, target.Kind) {
			return finding{}, errors.New("it restarts more than workloads that are restarted here")
		}
		kinds = append(kinds, target.Kind)
	}
	return p.section(from, rule, f, kinds)
}

// toRestart gives f a reload section if the rule restarts workloads that it
// does not name, of the kinds that are returned, and counts those it names.
func (m mutation) toRestart(f *finding) (named int, kinds []string) {
	for _, target := range m.Targets {
		switch {
		case target.named():
			named++
		case slices.Contains(rolled, target.Kind):
			kinds = append(kinds, target.Kind)
			f.Reload = &reloadPart{Selector: plainSelector(target.Selector)}
		default:
			f.lose("its targets of kind %s are left out: see reload.targets for custom resources", target.Kind)
		}
	}
	return named, kinds
}

// only says what the section reaches beside kinds.
func (m mutation) only(f *finding, kinds []string) {
	for _, target := range m.Targets {
		where := target.Namespace
		elsewhere := where != "" && where != "*" && where != f.Source.Namespace &&
			!ownNamespace(where)
		err := firstOf(
			doubt{given(target.Preconditions) || given(target.Context), "preconditions and context of a target have no counterpart here"},
			doubt{wildLabels(target.Selector), "a wildcard in labels has no counterpart in label selectors"},
			doubt{elsewhere, "it restarts workloads of namespace " + where + " for an object of another; there they consume a clone, " +
				"if any: give the rule that makes it a reload section"},
			doubt{
				metav1.FormatLabelSelector(target.Selector) != metav1.FormatLabelSelector(f.Reload.Selector),
				"its targets have different selectors; write a rule for each",
			},
		)
		if err != nil && !target.named() {
			f.off("%s", err)
		}
	}
	f.note("Headwater restarts what reads the object at its start, or mounts it, and nothing else, once its data changes: " +
		"not for labels, and not for a key that nobody reads. CronJobs and Argo's Rollouts count as well; " +
		"what the patch changes beside the annotation is left out")
	f.Reload.Kinds = kinds
	f.Reload.Off = restartsNo(kinds)
}

// restartsNo is why a section stays a comment for policies that restart these
// kinds alone.
func restartsNo(kinds []string) string {
	var missing []string
	for _, kind := range rolled {
		if !slices.Contains(kinds, kind) {
			missing = append(missing, kind)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("the policy restarts no %s, and this would, if one consumes the object; to be in force, "+
		"take the comment signs away, and keep those that must not restart out by reload.workloads.selector or their "+
		"annotation %s: \"Off\"", strings.Join(missing, " and no "), mark.Reload)
}

// join adds the kinds of another policy that is the same otherwise.
func (r *reloadPart) join(other reloadPart) bool {
	if metav1.FormatLabelSelector(r.Selector) != metav1.FormatLabelSelector(other.Selector) {
		return false
	}
	r.Kinds = distinct(r.Kinds, other.Kinds)
	r.Off = restartsNo(r.Kinds)
	return true
}

// namedTargets are workloads by name, which a rule cannot select, but whose
// owners can ask for the same.
func namedTargets(from string, m *mutation, kind object.Kind, name string) []Left {
	var left []Left
	for _, target := range m.Targets {
		if !target.named() {
			continue
		}
		what := target.Kind + " " + target.Name
		if target.Namespace != "" && !hasVariable(target.Namespace) {
			what = target.Kind + " " + target.Namespace + "/" + target.Name
		}
		if name == "" {
			left = append(left, Left{from, fmt.Sprintf("it restarts %s by name; annotate it with %s: Restart", what, mark.Reload)})
			continue
		}
		left = append(left, Left{from, fmt.Sprintf("it restarts %s by name, which a rule does not select; annotate that with %s: %s/%s, "+
			"for the object in its own namespace", what, mark.ReloadOn, kind, name)})
	}
	return left
}
