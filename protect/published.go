package protect

import (
	"fmt"
	"slices"

	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
)

// configurationView is a cache of the one configuration. It wakes on every
// change.
func configurationView(client kubernetes.Interface, log *zap.Logger, wake wake) (*kube.View[*admissionregistrationv1.ValidatingWebhookConfiguration], error) {
	informer := admissioninformers.NewFilteredValidatingWebhookConfigurationInformer(client, 0, cache.Indexers{},
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, ConfigurationName).String()
		})
	view, err := kube.NewView("webhook configuration", informer, log,
		func(obj any) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
			return nil, fmt.Errorf("object of type %T is not a ValidatingWebhookConfiguration", obj)
		})
	if err != nil {
		return nil, err
	}
	_, err = view.OnChange(func(kube.Change[*admissionregistrationv1.ValidatingWebhookConfiguration]) { wake.up() })
	return view, err
}

// publishedBy lists the different CA bundles of configuration, which is nil
// when there is none.
func publishedBy(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) []string {
	if configuration == nil {
		return nil
	}
	var bundles []string
	for _, webhook := range configuration.Webhooks {
		bundles = append(bundles, string(webhook.ClientConfig.CABundle))
	}
	slices.Sort(bundles)
	return slices.Compact(bundles)
}
