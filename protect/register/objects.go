package register

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Kinds of the registered objects.
const (
	kindWebhooks = "ValidatingWebhookConfiguration"
	kindPolicy   = "ValidatingAdmissionPolicy"
	kindBinding  = "ValidatingAdmissionPolicyBinding"
)

// The fields of each kind that Headwater manages.
var (
	webhookContent = contentOf(func(o *admissionregistrationv1.ValidatingWebhookConfiguration) *[]admissionregistrationv1.ValidatingWebhook {
		return &o.Webhooks
	})
	policyContent = contentOf(func(o *admissionregistrationv1.ValidatingAdmissionPolicy) *admissionregistrationv1.ValidatingAdmissionPolicySpec {
		return &o.Spec
	})
	bindingContent = contentOf(func(o *admissionregistrationv1.ValidatingAdmissionPolicyBinding) *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec {
		return &o.Spec
	})
)

// newReconcilers creates the reconciler of each kind.
func (r *Registration) newReconcilers() error {
	admission := r.Client.AdmissionregistrationV1()
	webhooks := admissioninformers.NewFilteredValidatingWebhookConfigurationInformer(r.Client, 0, cache.Indexers{}, informers.Named(spec.ConfigurationName))
	policies := admissioninformers.NewFilteredValidatingAdmissionPolicyInformer(r.Client, 0, cache.Indexers{}, managed)
	bindings := admissioninformers.NewFilteredValidatingAdmissionPolicyBindingInformer(r.Client, 0, cache.Indexers{}, managed)
	var failures [3]error
	r.webhooks, failures[0] = newObjectReconciler(r, kindWebhooks, []string{spec.ConfigurationName}, admission.ValidatingWebhookConfigurations(), webhooks, informers.Named(spec.ConfigurationName), webhookContent)
	r.policies, failures[1] = newObjectReconciler(r, kindPolicy, manifests.PolicyNames(), admission.ValidatingAdmissionPolicies(), policies, managed, policyContent)
	r.bindings, failures[2] = newObjectReconciler(r, kindBinding, manifests.PolicyNames(), admission.ValidatingAdmissionPolicyBindings(), bindings, managed, bindingContent)
	return errors.Join(failures[:]...)
}

func managed(o *metav1.ListOptions) {
	o.LabelSelector = labels.SelectorFromSet(mark.ManagedLabels()).String()
}

// newObjectReconciler returns a reconciler for the objects of one kind. names
// are the names that Headwater uses, and fields what it manages of an object.
// informer and tweak select the same objects.
func newObjectReconciler[T clusterObject, L runtime.Object](r *Registration, kind string, names []string, client lister[T, L],
	informer cache.SharedIndexInformer, tweak func(*metav1.ListOptions), fields content[T],
) (*objectReconciler[T], error) {
	view, err := informers.NewWholeView[T](kind, informer, r.Wake.Notify, r.Log)
	if err != nil {
		return nil, err
	}
	reconciler := &objectReconciler[T]{
		kind: kind, names: names, api: client, view: view, content: fields, clock: r.Clock, versions: &r.Versions,
		list:     func(ctx context.Context) ([]T, error) { return listObjects(ctx, client, tweak) },
		setOwner: func(ctx context.Context, object T, write bool) error { return r.setOwner(ctx, object, write) },
		onRestored: func(desired, found T) {
			var none T
			action, how := "Deleted", "deleted by another client (see the API server's audit log)"
			if found != none {
				action, how = "Changed", changedBy(found)
			}
			if kind == kindWebhooks { // not every API server has heard of it yet
				r.closedSince = time.Time{}
			} else {
				r.policiesSince = time.Time{}
			}
			r.reportRestored(kind, desired.GetName(), action, how)
		},
		onWritten: func(what string, object T) {
			r.Log.Info(kind+" "+what, zap.String("name", object.GetName()))
			r.OnChange()
		},
	}
	reconciler.init()
	return reconciler, nil
}

// reportRestored reports that an object was changed or deleted by another
// client and restored. The Event names the first client; repetitions only
// increase its count, but each is logged.
func (r *Registration) reportRestored(kind, name, action, how string) {
	r.Metrics.tampered.WithLabelValues(kind).Inc()
	note := fmt.Sprintf("%s %s was %s; restored it", kind, name, how)
	r.Log.Warn(note)
	r.Events.Record(events.Event{
		About: &corev1.ObjectReference{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind, Name: name,
		},
		Warning: true, Reason: "Tampered", Action: action, Note: note,
	})
	r.OnChange()
}

// reportUninstalled says that the owner is gone, and how to delete what it did not own.
func (r *Registration) reportUninstalled() {
	note := kube.ErrUninstalled.Error() + "; to delete what is left: kubectl delete validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings -l " +
		labels.SelectorFromSet(mark.ManagedLabels()).String()
	r.Log.Error(note)
	r.Events.Record(events.Event{About: leader.Ref(r.Namespace), Warning: true, Reason: "Uninstalled", Action: "Register", Note: note})
}

// changedBy describes who changed an object last. The API only records field
// managers, not users.
func changedBy(found metav1.Object) string {
	others := slices.DeleteFunc(slices.Clone(found.GetManagedFields()), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == mark.FieldManager || entry.Subresource != "" || entry.Time == nil
	})
	if len(others) == 0 {
		return "changed by another client"
	}
	last := slices.MaxFunc(others, func(a, b metav1.ManagedFieldsEntry) int { return a.Time.Compare(b.Time.Time) })
	return fmt.Sprintf("changed by field manager %q at %s", last.Manager, last.Time.UTC().Format(time.RFC3339))
}

// content compares and copies the fields that Headwater manages in objects of
// one kind. The managed label and the owner references are handled separately.
// Other labels and annotations are left unchanged.
type content[T clusterObject] struct {
	equal      func(a, b T) bool
	copyFields func(to, from T)
}

// contentOf returns the content for the field that the function points to.
func contentOf[T clusterObject, C any](field func(T) *C) content[T] {
	return content[T]{
		equal:      func(a, b T) bool { return equality.Semantic.DeepEqual(field(a), field(b)) },
		copyFields: func(to, from T) { *field(to) = *field(from) },
	}
}

// same reports whether live is in the desired state.
func (c content[T]) same(live, desired T) bool {
	return c.equal(live, desired) && live.GetLabels()[mark.ManagedByLabel] == desired.GetLabels()[mark.ManagedByLabel] &&
		equality.Semantic.DeepEqual(live.GetOwnerReferences(), desired.GetOwnerReferences())
}

// merged returns a copy of live with the managed fields of desired.
func (c content[T]) merged(live, desired T) T {
	merged, _ := live.DeepCopyObject().(T)
	c.copyFields(merged, desired)
	labels := maps.Clone(live.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, desired.GetLabels())
	merged.SetLabels(labels)
	merged.SetOwnerReferences(desired.GetOwnerReferences())
	return merged
}
