package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// The kinds of what is registered.
const (
	kindWebhooks = "ValidatingWebhookConfiguration"
	kindPolicy   = "ValidatingAdmissionPolicy"
	kindBinding  = "ValidatingAdmissionPolicyBinding"
)

// What of each kind is Headwater's.
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

// newReconcilers makes what keeps each kind.
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

// newObjectReconciler keeps the objects of a kind that bear names, among those that tweak
// chooses, and informer holds.
func newObjectReconciler[T clusterObject, L runtime.Object](r *Registration, kind string, names []string, client lister[T, L],
	informer cache.SharedIndexInformer, tweak func(*metav1.ListOptions), fields content[T],
) (*objectReconciler[T], error) {
	view, err := informers.NewWholeView[T](kind, informer, r.Wake.Up, r.Log)
	if err != nil {
		return nil, err
	}
	reconciler := &objectReconciler[T]{
		kind: kind, names: names, api: client, view: view, content: fields, clock: r.Clock, versions: &r.Versions,
		list:     func(ctx context.Context) ([]T, error) { return listObjects(ctx, client, tweak) },
		setOwner: func(ctx context.Context, object T, creation bool) error { return r.setOwner(ctx, object, creation) },
		onRestored: func(desired, found T) {
			var none T
			action, how := "Deleted", "deleted by somebody (the API server's audit log names whom)"
			if found != none {
				action, how = "Changed", changedBy(found)
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

// reportRestored tells of an object that somebody else had changed or deleted. The
// Event names who did it first; repeats of an action are counted, and logged.
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
