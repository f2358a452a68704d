package optin

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/suggest"
)

// Misspelt returns a fault for each annotation of an object and its pod template that has
// Headwater's prefix but an unknown name, sorted.
func Misspelt(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec) (faults []Fault) {
	unknown := append(mark.Unknown(meta.Annotations), mark.Unknown(template.Annotations)...)
	slices.Sort(unknown)
	for _, annotation := range slices.Compact(unknown) {
		faults = append(faults, Fault{Annotation: annotation, Problem: noneOfThatName(annotation)})
	}
	return faults
}

// noneOfThatName says why annotation is ignored, and suggests the closest known name.
func noneOfThatName(annotation string) string {
	var names []string
	for _, known := range mark.OwnerAnnotations() {
		names = append(names, strings.TrimPrefix(known, mark.Domain))
	}
	if meant := suggest.Closest(strings.TrimPrefix(annotation, mark.Domain), names); meant != "" {
		return "no annotation has this name; did you mean " + mark.Domain + meant + "?"
	}
	return "no annotation has this name; Headwater reads " + strings.Join(mark.OwnerAnnotations(), ", ")
}
