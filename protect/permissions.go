package protect

import (
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/register"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const admissionGroup = "admissionregistration.k8s.io"

// permissions lists what the rules and settings need at the start. needed is
// false if there are no rules.
func permissions(needed bool, settings spec.Settings, namespace string) []kube.Permission {
	if !needed {
		return nil
	}
	all := append(recordPermissions(namespace), kube.Permission{
		Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings", Verbs: []string{"list", "watch"},
		For: "know which users hold a ClusterRole that exempts them from a rule",
	})
	if settings.Engine != spec.EnginePolicy {
		all = append(all, webhookPermissions(namespace, settings.Certificates.SecretName)...)
	}
	return append(all, policyPermissions()...)
}

// webhookPermissions lists what the webhook needs. certificate is the name of a
// provided Secret; if it is empty, Headwater creates its own certificate.
func webhookPermissions(namespace, certificate string) []kube.Permission {
	all := []kube.Permission{
		{
			Group: admissionGroup, Resource: "validatingwebhookconfigurations",
			Verbs: []string{"create"}, For: "register the webhook",
		},
		{
			Group: admissionGroup, Resource: "validatingwebhookconfigurations", Name: spec.ConfigurationName,
			Verbs: []string{"get", "list", "watch", "update", "delete"}, For: "keep the webhook registered",
		},
	}
	if certificate != "" {
		return append(all, kube.Permission{
			Resource: "secrets", Namespace: namespace, Name: certificate,
			Verbs: []string{"get", "list", "watch"}, For: "serve the webhook's certificate", Cached: true,
		})
	}
	return append(all,
		kube.Permission{
			Resource: "secrets", Namespace: namespace, Verbs: []string{"create"}, For: "issue the webhook's certificate",
		},
		kube.Permission{
			Resource: "secrets", Namespace: namespace, Name: spec.CertificateSecret,
			Verbs: []string{"get", "list", "watch", "update", "delete"}, For: "renew the webhook's certificate", Cached: true,
		})
}

func policyPermissions() []kube.Permission {
	var all []kube.Permission
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		all = append(all, kube.Permission{
			Group: admissionGroup, Resource: resource, Verbs: []string{"list", "watch", "create"}, For: "register the policies",
		})
		for _, name := range manifests.PolicyNames() {
			all = append(all, kube.Permission{
				Group: admissionGroup, Resource: resource, Name: name, Verbs: []string{"get", "update", "delete"},
				For: "keep the policies registered",
			})
		}
	}
	return all
}

func recordPermissions(namespace string) []kube.Permission {
	return []kube.Permission{
		{
			Resource: "serviceaccounts", Namespace: namespace, Name: prove.ProverAccount, Verbs: []string{"impersonate"},
			For: "verify that an account without exemption is denied",
		},
		{
			Resource: "groups", Name: prove.ProverGroup, Verbs: []string{"impersonate"},
			For: "verify that an account without exemption is denied",
		},
		{
			Resource: "configmaps", Namespace: namespace, Name: prove.ProofsConfigMap, Verbs: []string{"get", "update"},
			For: "store since when each rule is verified",
		},
		{
			Resource: "configmaps", Namespace: namespace, Name: register.RegisteredConfigMap, Verbs: []string{"get", "update"},
			For: "know which objects an earlier leader registered",
		},
		{
			Resource: "configmaps", Namespace: namespace, Verbs: []string{"create"},
			For: "store which objects are registered, and since when each rule is verified",
		},
	}
}
