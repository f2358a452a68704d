package spec

import (
	"github.com/headwater-k8s/headwater/internal/object"
)

// The verb override on protectedobjects.headwater.dev, by the name of a rule,
// lets its holder do what the rule refuses.
const (
	OverrideVerb     = "override"
	OverrideGroup    = "headwater.dev"
	OverrideResource = "protectedobjects"
)

// CertificateSecret holds the CA and the serving certificate that Headwater
// makes, in its own namespace. Deleting it replaces both, without a gap: the old
// CA stays trusted for a day.
const CertificateSecret = "headwater-webhook-tls"

// ConfigurationName names Headwater's ValidatingWebhookConfiguration.
const ConfigurationName = "headwater"

// OwnerName names the ClusterRole that is Headwater's own, and owns what it
// registers.
const OwnerName = "headwater"

// KindNamespace is the kind of a Request about a namespace itself.
const KindNamespace object.Kind = "Namespace"

// ReviewPath is where the server answers AdmissionReviews; below it they bring
// a Scope.
const ReviewPath = "/validate"
