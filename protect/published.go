package protect

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

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
