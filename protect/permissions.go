package protect

import (
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/prove"
	"github.com/headwater-k8s/headwater/protect/register"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const admissionGroup = "admissionregistration.k8s.io"

// permissions are what the rules and settings in force at the start need.
func permissions(needed bool, settings spec.Settings, namespace string) []kube.Permission {
	if !needed {
		return nil
	}
	all := append(recordPermissions(namespace), kube.Permission{
		Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings", Verbs: []string{"list", "watch"},
		For: "know who holds a ClusterRole that may change a source",
	}, kube.Permission{
		Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: spec.OwnerName, Verbs: []string{"get"},
		For: "have what is registered go with an uninstallation",
	})
	if settings.Engine != spec.EnginePolicy {
		all = append(all, webhookPermissions(namespace, settings.Certificates.SecretName)...)
	}
	return append(all, policyPermissions()...)
}

// webhookPermissions are the webhook's; certificate names a Secret that somebody
// else keeps, if any.
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
			Verbs: []string{"list", "watch"}, For: "serve the webhook's certificate",
		})
	}
	return append(all,
		kube.Permission{
			Resource: "secrets", Namespace: namespace, Verbs: []string{"create"}, For: "make the webhook's certificate",
		},
		kube.Permission{
			Resource: "secrets", Namespace: namespace, Name: spec.CertificateSecret,
			Verbs: []string{"list", "watch", "update"}, For: "keep the webhook's certificate",
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
			For: "try whether an account without exemption is refused",
		},
		{
			Resource: "configmaps", Namespace: namespace, Name: prove.ProofsConfigMap, Verbs: []string{"get", "update"},
			For: "record since when each rule is proven to protect",
		},
		{
			Resource: "configmaps", Namespace: namespace, Name: register.RegisteredConfigMap, Verbs: []string{"get", "update"},
			For: "know what was registered before this process led",
		},
		{
			Resource: "configmaps", Namespace: namespace, Verbs: []string{"create"},
			For: "record what is registered, and since when each rule is proven to protect",
		},
	}
}
