package protect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// The kinds of what is registered.
const (
	kindWebhooks = "ValidatingWebhookConfiguration"
	kindPolicy   = "ValidatingAdmissionPolicy"
	kindBinding  = "ValidatingAdmissionPolicyBinding"
)

// prepare makes what keeps each kind.
func (r *Registration) prepare() error {
	admission := r.client.AdmissionregistrationV1()
	byName := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, ConfigurationName).String()
	}
	managed := func(o *metav1.ListOptions) { o.LabelSelector = labels.SelectorFromSet(managedLabels()).String() }
	var err error
	r.webhooks, err = newUpkeep(r, kindWebhooks, admission.ValidatingWebhookConfigurations(), adaptWebhooks,
		admissioninformers.NewFilteredValidatingWebhookConfigurationInformer(r.client, 0, cache.Indexers{}, byName),
		func(ctx context.Context) ([]*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
			list, err := admission.ValidatingWebhookConfigurations().List(ctx, listOptions(byName))
			return pointers(list.Items), err
		})
	if err != nil {
		return err
	}
	r.policies, err = newUpkeep(r, kindPolicy, admission.ValidatingAdmissionPolicies(), adaptPolicy,
		admissioninformers.NewFilteredValidatingAdmissionPolicyInformer(r.client, 0, cache.Indexers{}, managed),
		func(ctx context.Context) ([]*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
			list, err := admission.ValidatingAdmissionPolicies().List(ctx, listOptions(managed))
			return pointers(list.Items), err
		})
	if err != nil {
		return err
	}
	r.bindings, err = newUpkeep(r, kindBinding, admission.ValidatingAdmissionPolicyBindings(), adaptBinding,
		admissioninformers.NewFilteredValidatingAdmissionPolicyBindingInformer(r.client, 0, cache.Indexers{}, managed),
		func(ctx context.Context) ([]*admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
			list, err := admission.ValidatingAdmissionPolicyBindings().List(ctx, listOptions(managed))
			return pointers(list.Items), err
		})
	return err
}

func listOptions(tweak func(*metav1.ListOptions)) metav1.ListOptions {
	options := metav1.ListOptions{}
	tweak(&options)
	return options
}

func pointers[T any](items []T) []*T {
	all := make([]*T, 0, len(items))
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

func newUpkeep[T clusterObject](r *Registration, kind string, client api[T], adapt func(live, desired T) (T, bool),
	informer cache.SharedIndexInformer, ours func(context.Context) ([]T, error),
) (*upkeep[T], error) {
	view, err := kube.NewView(kind, informer, r.log, func(obj any) (none T, err error) {
		return none, fmt.Errorf("object of type %T is no %s", obj, kind)
	})
	if err != nil {
		return nil, err
	}
	if _, err := view.OnChange(func(kube.Change[T]) { r.wake.up() }); err != nil {
		return nil, err
	}
	u := &upkeep[T]{
		kind: kind, api: client, ours: ours, view: view, adapt: adapt, clock: r.clock,
		owned: func(ctx context.Context, object T, creation bool) error { return r.owned(ctx, object, creation) },
		restored: func(desired, found T) {
			var gone T
			action, how := "Deleted", "deleted by somebody (the API server's audit log names whom)"
			if found != gone {
				action, how = "Changed", changedBy(found)
			}
			r.restored(kind, desired.GetName(), action, how)
		},
		wrote: func(what string, object T) {
			r.log.Info(kind+" "+what, zap.String("name", object.GetName()))
			r.changed()
		},
	}
	u.init()
	return u, nil
}

// restored tells of an object that somebody else had changed or deleted. The
// Event names who did it first; repeats of an action are counted, and logged.
func (r *Registration) restored(kind, name, action, how string) {
	r.metrics.tampered.WithLabelValues(kind).Inc()
	note := fmt.Sprintf("%s %s was %s; restored it", kind, name, how)
	r.log.Warn(note)
	r.events.Record(kube.Event{
		About: &corev1.ObjectReference{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind, Name: name,
		},
		Warning: true, Reason: "Tampered", Action: action, Note: note,
	})
	r.changed()
}

// changedBy says who changed an object, as far as the API tells: it names field
// managers, not users.
func changedBy(found metav1.Object) string {
	others := slices.DeleteFunc(slices.Clone(found.GetManagedFields()), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == mark.FieldManager || entry.Subresource != "" || entry.Time == nil
	})
	if len(others) == 0 {
		return "changed by somebody"
	}
	last := slices.MaxFunc(others, func(a, b metav1.ManagedFieldsEntry) int { return a.Time.Compare(b.Time.Time) })
	return fmt.Sprintf("changed by field manager %q at %s", last.Manager, last.Time.UTC().Format(time.RFC3339))
}

// sameManaged reports whether live bears the labels of desired, and has its
// owner; adaptMeta has it do so. Labels and annotations of others stay.
func sameManaged(live, desired metav1.Object) bool {
	return live.GetLabels()[managedByLabel] == desired.GetLabels()[managedByLabel] &&
		equality.Semantic.DeepEqual(live.GetOwnerReferences(), desired.GetOwnerReferences())
}

func adaptMeta(live, desired metav1.Object) {
	labels := maps.Clone(live.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, desired.GetLabels())
	live.SetLabels(labels)
	live.SetOwnerReferences(desired.GetOwnerReferences())
}

func adaptWebhooks(live, desired *admissionregistrationv1.ValidatingWebhookConfiguration) (*admissionregistrationv1.ValidatingWebhookConfiguration, bool) {
	same := equality.Semantic.DeepEqual(live.Webhooks, desired.Webhooks) && sameManaged(live, desired)
	adapted := live.DeepCopy()
	adapted.Webhooks = desired.Webhooks
	adaptMeta(adapted, desired)
	return adapted, same
}

func adaptPolicy(live, desired *admissionregistrationv1.ValidatingAdmissionPolicy) (*admissionregistrationv1.ValidatingAdmissionPolicy, bool) {
	same := equality.Semantic.DeepEqual(live.Spec, desired.Spec) && sameManaged(live, desired)
	adapted := live.DeepCopy()
	adapted.Spec = desired.Spec
	adaptMeta(adapted, desired)
	return adapted, same
}

func adaptBinding(live, desired *admissionregistrationv1.ValidatingAdmissionPolicyBinding) (*admissionregistrationv1.ValidatingAdmissionPolicyBinding, bool) {
	same := equality.Semantic.DeepEqual(live.Spec, desired.Spec) && sameManaged(live, desired)
	adapted := live.DeepCopy()
	adapted.Spec = desired.Spec
	adaptMeta(adapted, desired)
	return adapted, same
}
