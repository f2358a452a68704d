package optin

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// waveOptIn is an opt-in by Wave's annotations.
type waveOptIn struct {
	excludesNothing
	asked  bool
	extras []object.Ref
	faults []Fault
}

func readWave(namespace string, annotations map[string]string) *waveOptIn {
	a := &waveOptIn{asked: annotations[mark.WaveUpdate] == "true"}
	if !a.asked {
		return a
	}
	for _, kind := range object.Kinds {
		a.readExtras(kind, namespace, items(annotations[mark.WaveExtras(kind)]))
	}
	return a
}

func (a *waveOptIn) readExtras(kind object.Kind, namespace string, list []string) {
	list, faults := firstOf(mark.WaveExtras(kind), list)
	a.faults = append(a.faults, faults...)
	for _, item := range list {
		name, err := readExtra(namespace, item)
		if err != nil {
			a.faults = append(a.faults, Fault{Annotation: mark.WaveExtras(kind), Problem: err.Error(), InPart: true})
			continue
		}
		a.extras = append(a.extras, object.Ref{Kind: kind, Namespace: namespace, Name: name})
	}
}

// readExtra parses NAME or NAMESPACE/NAME. Wave accepts any namespace; Headwater only
// the workload's own.
func readExtra(namespace, item string) (string, error) {
	of, name, qualified := strings.Cut(item, "/")
	if !qualified {
		of, name = namespace, item
	}
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return "", fmt.Errorf("%.40q is not NAME or NAMESPACE/NAME", item)
	case of != namespace:
		return "", fmt.Errorf("%.80q is in another namespace; a workload is reloaded only for objects in its own, "+
			"so clone the object there with a sync rule", item)
	}
	return name, nil
}

func (a *waveOptIn) Tool() spec.Tool { return spec.Wave }

func (a *waveOptIn) Action() spec.Action { return spec.Restart }

func (a *waveOptIn) wants(ref object.Ref, mode refs.Mode, _ mark.Tags) bool {
	return mode != refs.Listed || slices.Contains(a.extras, ref)
}
