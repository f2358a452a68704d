package keeper

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

// stored is a RuleStatus as it is in the cluster.
type stored struct {
	metav1.ObjectMeta

	Status rulestatus.Status
}

// isOurs reports whether the Keeper wrote the object. A GitOps tool may create one
// before the rule is in force.
func (s *stored) isOurs() bool { return s.Labels[mark.ManagedByLabel] == mark.ManagedBy }

func keep(obj any) (*stored, error) {
	found, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("object of type %T is not a RuleStatus", obj)
	}
	var decoded rulestatus.RuleStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &decoded); err != nil {
		// Somebody else wrote it. The next write corrects it.
		meta := metav1.ObjectMeta{
			Name: found.GetName(), UID: found.GetUID(), ResourceVersion: found.GetResourceVersion(),
			Labels: found.GetLabels(), Annotations: found.GetAnnotations(), OwnerReferences: found.GetOwnerReferences(), Finalizers: found.GetFinalizers(),
		}
		return &stored{ObjectMeta: meta}, nil //nolint:nilerr // see above
	}
	decoded.ManagedFields = nil
	return &stored{decoded.ObjectMeta, decoded.Status}, nil
}

// write creates or updates the object of rule. Labels and annotations of others stay.
func (k *Keeper) write(ctx context.Context, rule string, before *stored, exists bool, status rulestatus.Status) error {
	desired := rulestatus.RuleStatus{
		TypeMeta:   metav1.TypeMeta{APIVersion: rulestatus.GVR.GroupVersion().String(), Kind: rulestatus.Kind},
		ObjectMeta: before.ObjectMeta, Status: status,
	}
	desired.Name = rule
	desired.Labels = maps.Clone(before.Labels)
	if desired.Labels == nil {
		desired.Labels = map[string]string{}
	}
	maps.Copy(desired.Labels, mark.ManagedLabels())
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&desired)
	if err != nil {
		return fmt.Errorf("write RuleStatus %s: %w", rule, err)
	}
	object := &unstructured.Unstructured{Object: content}
	if exists {
		_, err = k.client.Update(ctx, object, metav1.UpdateOptions{FieldManager: mark.FieldManager})
	} else {
		_, err = k.client.Create(ctx, object, metav1.CreateOptions{FieldManager: mark.FieldManager})
		if apierrors.IsNotFound(err) {
			return errNotInstalled
		}
	}
	return unlessBehind("write", rule, err)
}

func (k *Keeper) delete(ctx context.Context, object *stored) error {
	uid := object.UID
	err := k.client.Delete(ctx, object.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	return unlessBehind("delete", object.Name, err)
}

// unlessBehind returns err, unless it says that the cache was behind: then the next
// step does what is left.
func unlessBehind(verb, name string, err error) error {
	if err == nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s RuleStatus %s: %w", verb, name, err)
}
