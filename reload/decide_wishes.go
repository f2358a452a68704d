package reload

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// wishes are what the owner of a consumer says about it: its labels, which
// rules select by, and annotations.
type wishes struct {
	labels labels.Set
	// action applies instead of the rule's; empty leaves it to the rule.
	action Action
	// keys are the only ones that count; nil means all.
	keys []string
}

// fault is an annotation that is ignored, since it cannot be read.
type fault struct{ annotation, problem string }

// reloadOff is what None is called in the annotation.
const reloadOff = "Off"

// wishesOf reads the wishes on a consumer.
func wishesOf(meta *metav1.ObjectMeta) (wishes, []fault) {
	of := wishes{labels: meta.Labels}
	var faults []fault
	read := func(annotation string, parse func(value string) error) {
		value, set := meta.Annotations[annotation]
		if !set {
			return
		}
		if err := parse(value); err != nil {
			faults = append(faults, fault{annotation, err.Error()})
		}
	}
	read(mark.Reload, func(value string) (err error) { of.action, err = parseAction(value); return err })
	read(mark.ReloadOn, func(value string) error { _, err := mark.ParseReloadOn(meta.Namespace, value); return err })
	read(mark.ReloadKeys, func(value string) (err error) { of.keys, err = mark.ParseReloadKeys(value); return err })
	return of, faults
}

func parseAction(value string) (Action, error) {
	switch value {
	case string(Auto), string(Restart), string(Refresh):
		return Action(value), nil
	case reloadOff:
		return None, nil
	default:
		return "", fmt.Errorf("%.40q is not Auto, Restart, Refresh or Off", value)
	}
}

// narrowed is r with the keys that count, and false when none of them does.
func (w wishes) narrowed(r Reference) (Reference, bool) {
	switch {
	case w.keys == nil:
		return r, true
	case r.Keys == nil:
		r.Keys = w.keys
		return r, true
	}
	keys := slices.DeleteFunc(slices.Clone(r.Keys), func(key string) bool { return !slices.Contains(w.keys, key) })
	if len(keys) == 0 {
		return r, false
	}
	r.Keys = keys
	return r, true
}

// listed are the references that the owner of a workload lists beside those of
// its pods. No pod needs them to start.
func listed(meta *metav1.ObjectMeta) []Reference {
	refs, _ := mark.ParseReloadOn(meta.Namespace, meta.Annotations[mark.ReloadOn]) // a fault is told by wishesOf
	references := make([]Reference, 0, len(refs))
	for _, ref := range refs {
		references = append(references, Reference{Kind: ref.Kind, Name: ref.Name, Mode: Listed, Optional: true})
	}
	return references
}
