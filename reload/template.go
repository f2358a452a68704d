package reload

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// keepCustom keeps of an object of form what newWorkload keeps of a typed one.
func keepCustom(form *Form, keeps keptReferences) func(any) (*Workload, error) {
	return func(obj any) (*Workload, error) {
		custom, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("object of type %T is no custom resource", obj)
		}
		meta := metaOf(custom)
		kept := &Workload{Kind: form.kind(), Form: form, Owner: controllerOf(meta)}
		if kept.isTarget() {
			kept.ObjectMeta, kept.Owner = keepMeta(meta, true), nil
			return kept, nil
		}
		template, err := templateIn(custom.Object, form.Template)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(form.Template, "."), err)
		}
		if template != nil {
			kept.Unknown = unknownOn(meta, template)
			meta = withWishes(meta, template)
			kept.References = append(keeps(meta.Namespace, &template.Spec), listed(meta)...)
			kept.foreign = readForeign(kept.Kind, meta.Namespace, meta.Annotations, template.Annotations)
			kept.Stamp = stampOf(template.Annotations)
			kept.Rollout = customRollout(custom, template, kept.Kind)
			kept.RecordedAt = mark.WrittenAt(custom.GetManagedFields())
			kept.Edited = editedSince(custom.GetManagedFields(), meta.Annotations, form.Template)
		} else {
			kept.Bare = true
			if kept.Borrows = borrowed(form, custom); kept.Borrows != nil {
				kept.Rollout = borrowingRollout(custom)
			}
		}
		// The object may hold what its children consume, so all is kept of it.
		kept.ObjectMeta = keepMeta(meta, true)
		return kept, nil
	}
}

// metaOf reads what keepMeta and controllerOf read.
func metaOf(custom *unstructured.Unstructured) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{
		Namespace:         custom.GetNamespace(),
		Name:              custom.GetName(),
		UID:               custom.GetUID(),
		ResourceVersion:   custom.GetResourceVersion(),
		Labels:            custom.GetLabels(),
		Annotations:       custom.GetAnnotations(),
		CreationTimestamp: custom.GetCreationTimestamp(),
		DeletionTimestamp: custom.GetDeletionTimestamp(),
		OwnerReferences:   custom.GetOwnerReferences(),
	}
}

// templateIn reads the pod template at path; nil when there is nothing. What is
// no pod template is an error, which holds none of its values.
func templateIn(root map[string]any, path []string) (*corev1.PodTemplateSpec, error) {
	at := root
	for _, key := range path {
		value, found := at[key]
		if !found || value == nil {
			return nil, nil
		}
		next, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is %T, not a mapping", key, value)
		}
		at = next
	}
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(at, &template); err != nil {
		return nil, fmt.Errorf("not a pod template: %w", err)
	}
	return &template, nil
}

// borrowed returns the object whose pod template a Rollout runs in place of its
// own: the Rollout follows every change of it, so the stamp belongs there. A
// Deployment is a workload like any other, scaled down or not.
func borrowed(form *Form, rollout *unstructured.Unstructured) *key {
	if form.kind() != KindRollout {
		return nil
	}
	reference, found, err := unstructured.NestedStringMap(rollout.Object, "spec", "workloadRef")
	if err != nil || !found {
		return nil
	}
	version, _ := schema.ParseGroupVersion(reference["apiVersion"]) // an odd one is a kind that nobody knows
	kind := KindOf(version.WithKind(reference["kind"]).GroupKind())
	return &key{kind: kind, namespace: rollout.GetNamespace(), name: reference["name"]}
}
