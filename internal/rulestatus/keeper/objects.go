package keeper

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
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
	// says is true if the object has any status, also one that cannot be read.
	says bool
}

// isBlank reports whether the object says nothing and the Keeper never wrote it: a
// GitOps tool may create one before the rule is in force.
func (s *stored) isBlank() bool { return !s.says && s.Labels[mark.ManagedByLabel] != mark.ManagedBy }

func keep(obj any) (*stored, error) {
	found, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("object of type %T is not a RuleStatus", obj)
	}
	status, exists := found.Object["status"]
	fields, isObject := status.(map[string]any)
	says := exists && (!isObject || len(fields) > 0)
	var decoded rulestatus.RuleStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &decoded); err != nil {
		// Somebody else wrote it. The next write corrects it.
		meta := metav1.ObjectMeta{
			Name: found.GetName(), UID: found.GetUID(), ResourceVersion: found.GetResourceVersion(),
			Labels: found.GetLabels(), Annotations: found.GetAnnotations(), OwnerReferences: found.GetOwnerReferences(), Finalizers: found.GetFinalizers(),
		}
		return &stored{ObjectMeta: meta, says: says}, nil //nolint:nilerr // see above
	}
	decoded.ManagedFields = nil
	return &stored{decoded.ObjectMeta, decoded.Status, says}, nil
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
	object, answer := &unstructured.Unstructured{Object: content}, (*unstructured.Unstructured)(nil)
	if exists {
		answer, err = k.client.Update(ctx, object, metav1.UpdateOptions{FieldManager: mark.FieldManager})
	} else {
		answer, err = k.client.Create(ctx, object, metav1.CreateOptions{FieldManager: mark.FieldManager})
		if apierrors.IsNotFound(err) {
			return errNotInstalled
		}
	}
	if err == nil {
		k.notePruned(rule, answer, status)
	}
	if err != nil {
		return fmt.Errorf("write RuleStatus %s: %w", rule, err)
	}
	return nil
}

// pruned is a status of which the API server stored only a part, and the version that has
// that part.
type pruned struct {
	status  rulestatus.Status
	version string
}

// is reports whether object is all that the API server stores of status.
func (p pruned) is(status rulestatus.Status, object *stored) bool {
	return p.version == object.ResourceVersion && equality.Semantic.DeepEqual(p.status, status)
}

// notePruned compares the API server's answer with status, which was written: a
// CustomResourceDefinition of an earlier version drops the fields that it does not have.
func (k *Keeper) notePruned(rule string, answer *unstructured.Unstructured, status rulestatus.Status) {
	delete(k.pruned, rule)
	found, err := keep(answer)
	if err != nil || equality.Semantic.DeepEqual(found.Status, status) {
		return
	}
	k.pruned[rule] = pruned{status, found.ResourceVersion}
	k.warn("the API server stores only a part of each RuleStatus, because its CustomResourceDefinition is of another version; apply deploy/crd.yaml of this one", nil)
}

func (k *Keeper) delete(ctx context.Context, object *stored) error {
	uid := object.UID
	err := k.client.Delete(ctx, object.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete RuleStatus %s: %w", object.Name, err)
	}
	return nil
}

// unlessBehind returns err, unless it says that the cache was behind: then the next
// step does what is left.
func unlessBehind(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
