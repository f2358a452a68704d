package workload

import (
	"errors"
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

// KeepCustom reduces a custom resource to what newWorkload keeps of a built-in kind.
func KeepCustom(info *kinds.Info, keeps KeptReferences) func(any) (*Workload, error) {
	return func(obj any) (*Workload, error) {
		custom, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("object of type %T is no custom resource", obj)
		}
		meta := MetaOf(custom)
		kept := &Workload{Kind: info.ConsumerKind(), custom: info, Owner: controllerOf(meta)}
		if kept.IsTarget() {
			kept.ObjectMeta, kept.Owner = keepMeta(meta, true), nil
			return kept, nil
		}
		template, err := templateOf(custom, info)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(info.StampAt(), "."), err)
		}
		if template != nil {
			kept.Misspelt = optin.Misspelt(meta, template)
			meta = withTemplateAnnotations(meta, template)
			kept.References = append(keeps(meta.Namespace, &template.Spec), optin.Listed(meta)...)
			kept.ThirdParty = optin.ReadThirdParty(kept.Kind, meta.Namespace, meta.Annotations, template.Annotations)
			kept.Stamp = StampOf(template.Annotations)
			kept.Rollout = customRollout(custom, template, info)
			kept.RecordedAt = mark.WrittenAt(custom.GetManagedFields())
			kept.EditedAt = editedAt(custom.GetManagedFields(), info.Template)
		} else {
			kept.NoTemplate = true
			if kept.TemplateFrom = borrowed(info, custom); kept.TemplateFrom != nil {
				kept.Rollout = borrowingRollout(custom)
			}
		}
		// Objects owned by this one may be consumers, so all metadata is kept.
		kept.ObjectMeta = keepMeta(meta, true)
		return kept, nil
	}
}

// MetaOf returns the metadata that keepMeta and controllerOf need.
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

// templateOf returns the pod template of custom, or an empty one with the annotations that
// its pods get.
func templateOf(custom *unstructured.Unstructured, info *kinds.Info) (*corev1.PodTemplateSpec, error) {
	if info.Annotations == nil {
		return templateIn(custom.Object, info.Template)
	}
	annotations, _, err := unstructured.NestedStringMap(custom.Object, info.Annotations...)
	if err != nil {
		return nil, errors.New("not annotations") // the error quotes what is there
	}
	return &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}, nil
}

// templateIn parses the pod template at path; nil if there is none. Errors contain no
// values of it.
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

// borrowed returns the object whose pod template an Argo Rollout uses; nil if it has
// its own. The Rollout follows every change of that template, so the stamp is written
// there. A Deployment counts as a workload even if it is scaled down.
func borrowed(info *kinds.Info, rollout *unstructured.Unstructured) *kinds.Key {
	if info.ConsumerKind() != kinds.KindRollout {
		return nil
	}
	reference, found, err := unstructured.NestedStringMap(rollout.Object, "spec", "workloadRef")
	if err != nil || !found {
		return nil
	}
	version, _ := schema.ParseGroupVersion(reference["apiVersion"]) // an invalid version leads to an unknown kind
	kind := kinds.Of(version.WithKind(reference["kind"]).GroupKind())
	return &kinds.Key{Kind: kind, Namespace: rollout.GetNamespace(), Name: reference["name"]}
}
