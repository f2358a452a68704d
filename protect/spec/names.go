package spec

import (
	"github.com/headwater-k8s/headwater/internal/object"
)

// A user with the verb override on protectedobjects.headwater.dev NAME may do
// everything that the rule NAME denies.
const (
	OverrideVerb     = "override"
	OverrideGroup    = "headwater.dev"
	OverrideResource = "protectedobjects"
)

// CertificateSecret is the Secret in Headwater's namespace with the CA and
// serving certificate that Headwater issues. If it is deleted, Headwater
// replaces both without downtime: the old CA stays trusted for a day.
const CertificateSecret = "headwater-webhook-tls"

// ConfigurationName is the name of Headwater's ValidatingWebhookConfiguration.
const ConfigurationName = "headwater"

// GuardName and LimitName are the names of the static policies of the chart, and of
// their bindings. LimitUpdatesName is a second binding of the policy LimitName, for
// updates of Secrets and ConfigMaps. Headwater has no permission on them.
const (
	GuardName        = "headwater-guard"
	LimitName        = "headwater-limit"
	LimitUpdatesName = "headwater-limit-updates"
)

// ReachName is the ConfigMap, in Headwater's namespace, whose creation the webhook alone
// denies. So the prover sees that the API server reaches the webhook. Nobody creates it.
const ReachName = "headwater-reach"

// WritersAnnotation of the policy GuardName has guard.writers of the chart's values, as a
// JSON list of user names.
const WritersAnnotation = "headwater.dev/writers"

// KindNamespace is the kind of a request that deletes a namespace.
const KindNamespace object.Kind = "Namespace"

// ReviewPath is the URL path prefix of the webhook. Endpoint.Segment follows, and
// the rest of the path encodes a decide.Scope.
const ReviewPath = "/validate"
