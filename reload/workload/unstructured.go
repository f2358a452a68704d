package workload

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
)

// KeepCustom keeps of an object of form what newWorkload keeps of a typed one.
func KeepCustom(form *kinds.Info, keeps KeptReferences) func(any) (*Workload, error) {
	return func(obj any) (*Workload, error) {
		custom, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("object of type %T is no custom resource", obj)
		}
		meta := MetaOf(custom)
		kept := &Workload{Kind: form.ConsumerKind(), custom: form, Owner: controllerOf(meta)}
		if kept.IsTarget() {
			kept.ObjectMeta, kept.Owner = keepMeta(meta, true), nil
			return kept, nil
		}
		template, err := templateIn(custom.Object, form.Template)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(form.Template, "."), err)
		}
		if template != nil {
			kept.unknown = optin.UnknownOn(meta, template)
			meta = withWishes(meta, template)
			kept.References = append(keeps(meta.Namespace, &template.Spec), optin.Listed(meta)...)
			kept.ThirdParty = optin.ReadThirdParty(kept.Kind, meta.Namespace, meta.Annotations, template.Annotations)
			kept.Stamp = StampOf(template.Annotations)
			kept.Rollout = customRollout(custom, template, kept.Kind)
			kept.RecordedAt = mark.WrittenAt(custom.GetManagedFields())
			kept.Edited = EditedSince(custom.GetManagedFields(), meta.Annotations, form.Template)
		} else {
			kept.NoTemplate = true
			if kept.TemplateFrom = borrowed(form, custom); kept.TemplateFrom != nil {
				kept.Rollout = borrowingRollout(custom)
			}
		}
		// The object may hold what its children consume, so all is kept of it.
		kept.ObjectMeta = keepMeta(meta, true)
		return kept, nil
	}
}

// MetaOf reads what keepMeta and controllerOf read.
func MetaOf(custom *unstructured.Unstructured) *metav1.ObjectMeta {
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
func borrowed(form *kinds.Info, rollout *unstructured.Unstructured) *kinds.Key {
	if form.ConsumerKind() != kinds.KindRollout {
		return nil
	}
	reference, found, err := unstructured.NestedStringMap(rollout.Object, "spec", "workloadRef")
	if err != nil || !found {
		return nil
	}
	version, _ := schema.ParseGroupVersion(reference["apiVersion"]) // an odd one is a kind that nobody knows
	kind := kinds.Of(version.WithKind(reference["kind"]).GroupKind())
	return &kinds.Key{Kind: kind, Namespace: rollout.GetNamespace(), Name: reference["name"]}
}
