package editors_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/protect/editors"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func rights(group, resource, verb string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
}

const rbacGroup = rbacv1.GroupName

var headwaterAccount = spec.ServiceAccount{Namespace: "headwater-system", Name: "headwater"}

// ofKubernetes binds the ClusterRole held as the API server itself does it.
func ofKubernetes(name, kind, namespace, subject string) rbacv1.ClusterRoleBinding {
	one := binding(name, "held")
	one.Subjects = []rbacv1.Subject{{Kind: kind, Namespace: namespace, Name: subject}}
	return *one
}

// waysOf returns the ways of a user with these rules, in a namespace or, if that is
// empty, in the whole cluster.
func waysOf(namespace string, guarded bool, granted ...rbacv1.PolicyRule) []editors.Editor {
	rule := protecttest.BlogRule(func(r *spec.Rule) {
		r.Allow = spec.Allow{
			ClusterRoles: []string{"owner"}, Users: []string{alice}, Groups: []string{"ops"},
			ServiceAccounts: []spec.ServiceAccount{{Namespace: "ci", Name: "deployer"}},
		}
	})
	rbac := editors.RBAC{ClusterRoles: []rbacv1.ClusterRole{
		role("owner", rights("", "secrets", "get"), rights("apps", "deployments", "list")),
		role("breaker", overriding("blogsecret")), role("held", granted...),
	}}
	if namespace == "" {
		rbac.ClusterRoleBindings = []rbacv1.ClusterRoleBinding{
			*binding("held", "held", "mallory"), ofKubernetes("system:controller:job-controller", "ServiceAccount", "kube-system", "job-controller"),
			ofKubernetes("system:kube-controller-manager", "User", "", "system:kube-controller-manager"),
		}
	} else {
		rbac.RoleBindings = []rbacv1.RoleBinding{{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "held"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "held"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacGroup, Kind: "User", Name: "mallory"}},
		}}
	}
	exempt := editors.Of(rule, headwaterAccount, rbac.ClusterRoles, rbac.ClusterRoleBindings)
	exempt = append(exempt, editors.Writers([]string{alice, "system:serviceaccount:cd:argo"})...)
	return editors.Ways(rule, exempt, editors.Own{
		Account: headwaterAccount, Configuration: "headwater", Requests: []string{"headwater-approvals"},
		Policies: []string{spec.GuardName, "headwater-sources"}, Guarded: guarded,
		Systems: []string{"system:serviceaccount:kube-system:namespace-controller", "system:kube-controller-manager", "system:serviceaccount:kcp:collector"},
	}, rbac)
}

func TestEverybodyThatRBACLetsActAsAnExemptUserIsListed(t *testing.T) {
	for sentence, test := range map[string]struct {
		namespace string
		guarded   bool
		granted   []rbacv1.PolicyRule
		want      []string
	}{
		"a user": {"", true, []rbacv1.PolicyRule{rights("", "users", "impersonate", alice)}, []string{"may impersonate User alice"}},
		"a controller's user": {
			"", true,
			[]rbacv1.PolicyRule{rights("", "users", "impersonate", "system:kube-controller-manager")},
			[]string{"may impersonate User system:kube-controller-manager"},
		},
		"the account of a systemIdentity": {"kcp", true, []rbacv1.PolicyRule{rights("", "serviceaccounts/token", "create")}, []string{"may get a token of ServiceAccount kcp/collector"}},
		"another user":                    {"", true, []rbacv1.PolicyRule{rights("", "users", "impersonate", "albert")}, nil},
		"a group alone":                   {"", true, []rbacv1.PolicyRule{rights("", "groups", "impersonate")}, nil},
		"a group, as any user": {
			"", true, []rbacv1.PolicyRule{rights("", "groups", "impersonate", "ops"), rights("", "users", "impersonate", "albert")}, []string{"may impersonate Group ops"},
		},
		"a service account, in its namespace": {
			"ci", true, []rbacv1.PolicyRule{rights("", "serviceaccounts", "impersonate")}, []string{"may impersonate ServiceAccount ci/deployer"},
		},
		"a service account, in another namespace": {"other", true, []rbacv1.PolicyRule{rights("", "serviceaccounts", "impersonate")}, nil},
		"Headwater's account, without a UID":      {"headwater-system", false, []rbacv1.PolicyRule{rights("", "serviceaccounts", "impersonate")}, nil},
		"Headwater's account, with a UID": {
			"", true,
			[]rbacv1.PolicyRule{rights("", "serviceaccounts", "impersonate", "headwater"), rights("authentication.k8s.io", "uids", "impersonate")},
			[]string{"may impersonate ServiceAccount headwater-system/headwater and 1 more"},
		},
		"a token": {"ci", true, []rbacv1.PolicyRule{rights("", "serviceaccounts/token", "create")}, []string{"may get a token of ServiceAccount ci/deployer"}},
		"a token by a wildcard for subresources": {
			"ci", true, []rbacv1.PolicyRule{rights("", "*/token", "create", "deployer")}, []string{"may get a token of ServiceAccount ci/deployer"},
		},
		"a token of another account":        {"ci", true, []rbacv1.PolicyRule{rights("", "serviceaccounts/token", "create", "other")}, nil},
		"a token by a Secret":               {"ci", true, []rbacv1.PolicyRule{rights("", "secrets", "create"), rights("", "secrets", "list")}, []string{"may get a token of ServiceAccount ci/deployer"}},
		"a Secret that cannot be read":      {"ci", true, []rbacv1.PolicyRule{rights("", "secrets", "create")}, nil},
		"a token of Headwater":              {"headwater-system", false, []rbacv1.PolicyRule{rights("", "serviceaccounts/token", "create")}, []string{"may get a token of ServiceAccount headwater-system/headwater"}},
		"a token of Headwater, guarded":     {"headwater-system", true, []rbacv1.PolicyRule{rights("", "serviceaccounts/token", "create")}, nil},
		"a pod":                             {"ci", true, []rbacv1.PolicyRule{rights("", "pods", "create")}, []string{"may run a pod as ServiceAccount ci/deployer"}},
		"a workload":                        {"ci", true, []rbacv1.PolicyRule{rights("apps", "deployments", "patch")}, []string{"may run a pod as ServiceAccount ci/deployer"}},
		"a workload of Headwater":           {"headwater-system", false, []rbacv1.PolicyRule{rights("batch", "cronjobs", "update")}, []string{"may run a pod as ServiceAccount headwater-system/headwater"}},
		"pods in every namespace":           {"", false, []rbacv1.PolicyRule{rights("", "pods", "create")}, []string{"may run a pod as ServiceAccount ci/deployer and 4 more"}},
		"pods in every namespace, guarded":  {"", true, []rbacv1.PolicyRule{rights("", "pods", "create")}, []string{"may run a pod as ServiceAccount ci/deployer and 3 more"}},
		"exec":                              {"headwater-system", false, []rbacv1.PolicyRule{rights("", "pods/exec", "get")}, []string{"may run commands in a pod of ServiceAccount headwater-system/headwater"}},
		"exec, guarded":                     {"headwater-system", true, []rbacv1.PolicyRule{rights("", "pods/exec", "create")}, nil},
		"ephemeral containers":              {"ci", true, []rbacv1.PolicyRule{rights("", "pods/ephemeralcontainers", "patch")}, []string{"may run commands in a pod of ServiceAccount ci/deployer"}},
		"kubelets":                          {"", true, []rbacv1.PolicyRule{rights("", "nodes/proxy", "get")}, []string{"may run commands in any pod, through nodes/proxy"}},
		"a binding, by bind":                {"", true, []rbacv1.PolicyRule{rights(rbacGroup, "clusterrolebindings", "create"), rights(rbacGroup, "clusterroles", "bind", "owner")}, []string{"may bind ClusterRole owner to themselves"}},
		"a binding of an override":          {"", true, []rbacv1.PolicyRule{rights(rbacGroup, "clusterrolebindings", "patch"), rights(rbacGroup, "clusterroles", "bind", "breaker")}, []string{"may bind ClusterRole breaker to themselves"}},
		"bind for another ClusterRole":      {"", true, []rbacv1.PolicyRule{rights(rbacGroup, "clusterrolebindings", "create"), rights(rbacGroup, "clusterroles", "bind", "view")}, nil},
		"a binding of what they hold":       {"", true, []rbacv1.PolicyRule{rights(rbacGroup, "clusterrolebindings", "create"), rights("", "secrets", "get"), rights("apps", "*", "list")}, []string{"may bind ClusterRole owner to themselves"}},
		"a binding of more than they hold":  {"", true, []rbacv1.PolicyRule{rights(rbacGroup, "clusterrolebindings", "create"), rights("", "secrets", "get"), rights("apps", "deployments", "list", "one")}, nil},
		"a binding in a namespace":          {"ci", true, []rbacv1.PolicyRule{rights(rbacGroup, "clusterrolebindings", "create"), rights(rbacGroup, "clusterroles", "bind")}, nil},
		"policies":                          {"", true, []rbacv1.PolicyRule{rights("admissionregistration.k8s.io", "validatingadmissionpolicies", "delete")}, []string{"may change the policies that deny"}},
		"bindings of policies":              {"", true, []rbacv1.PolicyRule{rights("admissionregistration.k8s.io", "validatingadmissionpolicybindings", "patch", "headwater-sources")}, []string{"may change the policies that deny"}},
		"policies, only to read":            {"", true, []rbacv1.PolicyRule{rights("admissionregistration.k8s.io", "validatingadmissionpolicies", "get")}, nil},
		"a writer's account":                {"cd", true, []rbacv1.PolicyRule{rights("", "serviceaccounts/token", "create", "argo")}, []string{"may get a token of ServiceAccount cd/argo"}},
		"a writer's account, without a UID": {"cd", true, []rbacv1.PolicyRule{rights("", "serviceaccounts", "impersonate")}, nil},
		"webhooks that change requests":     {"", true, []rbacv1.PolicyRule{rights("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "update", "one")}, []string{"may have the API server change what somebody else writes, by mutating webhooks or policies"}},
		"policies that change requests":     {"", true, []rbacv1.PolicyRule{rights("admissionregistration.k8s.io", "mutatingadmissionpolicies", "create")}, []string{"may have the API server change what somebody else writes, by mutating webhooks or policies"}},
		"webhooks that only refuse":         {"", true, []rbacv1.PolicyRule{rights("admissionregistration.k8s.io", "validatingwebhookconfigurations", "create")}, nil},
		"certificates": {
			"", true,
			[]rbacv1.PolicyRule{
				rights("certificates.k8s.io", "certificatesigningrequests", "create"), rights("certificates.k8s.io", "certificatesigningrequests/approval", "update"),
				rights("certificates.k8s.io", "signers", "approve", "kubernetes.io/kube-apiserver-client"),
			},
			[]string{"may have a certificate signed for any user, by approving a CertificateSigningRequest"},
		},
		"certificates of all of Kubernetes' signers": {
			"", true,
			[]rbacv1.PolicyRule{
				rights("certificates.k8s.io", "certificatesigningrequests", "create"), rights("certificates.k8s.io", "certificatesigningrequests/approval", "update"),
				rights("certificates.k8s.io", "signers", "approve", "kubernetes.io/*"),
			},
			[]string{"may have a certificate signed for any user, by approving a CertificateSigningRequest"},
		},
		"certificates of another signer": {
			"", true,
			[]rbacv1.PolicyRule{
				rights("certificates.k8s.io", "certificatesigningrequests", "create"), rights("certificates.k8s.io", "certificatesigningrequests/approval", "update"),
				rights("certificates.k8s.io", "signers", "approve", "kubernetes.io/kubelet-serving"),
			},
			nil,
		},
		"a token of a controller":        {"kube-system", true, []rbacv1.PolicyRule{rights("", "serviceaccounts/token", "create", "any")}, []string{"may get a token of ServiceAccount kube-system/*"}},
		"a controller, without a UID":    {"kube-system", true, []rbacv1.PolicyRule{rights("", "serviceaccounts", "impersonate")}, []string{"may impersonate ServiceAccount kube-system/*"}},
		"escalate":                       {"", true, []rbacv1.PolicyRule{rights(rbacGroup, "clusterroles", "update"), rights(rbacGroup, "clusterroles", "escalate")}, []string{"may add the override to a ClusterRole, by the verb escalate"}},
		"records":                        {"headwater-system", false, []rbacv1.PolicyRule{rights("", "secrets", "create")}, []string{"may write what Headwater records in Namespace headwater-system"}},
		"records, guarded":               {"headwater-system", true, []rbacv1.PolicyRule{rights("", "secrets", "create")}, nil},
		"one record":                     {"headwater-system", false, []rbacv1.PolicyRule{rights("", "configmaps", "update", "headwater-removals")}, []string{"may write what Headwater records in Namespace headwater-system"}},
		"what people are meant to write": {"headwater-system", false, []rbacv1.PolicyRule{rights("", "configmaps", "update", "headwater-approvals")}, nil},
		"the configuration, guarded":     {"headwater-system", true, []rbacv1.PolicyRule{rights("", "configmaps", "update", "headwater")}, nil},
		"the configuration":              {"headwater-system", false, []rbacv1.PolicyRule{rights("", "configmaps", "update", "headwater")}, []string{"may change the rule, in ConfigMap headwater-system/headwater"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			via := ": ClusterRole held, through ClusterRoleBinding held"
			if test.namespace != "" {
				via = ": ClusterRole held, through RoleBinding " + test.namespace + "/held"
			}
			var lines, want []string
			for _, editor := range waysOf(test.namespace, test.guarded, test.granted...) {
				require.Equal(t, "User mallory", editor.Subject())
				lines = append(lines, editor.Through())
			}
			for _, line := range test.want {
				want = append(want, line+via)
			}
			require.Equal(t, want, lines)
		})
	}
}

func TestWhoIsExemptAlreadyNeedsNoWay(t *testing.T) {
	rule := protecttest.BlogRule()
	everything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	rbac := editors.RBAC{ClusterRoles: []rbacv1.ClusterRole{role("cluster-admin", everything)}, ClusterRoleBindings: []rbacv1.ClusterRoleBinding{*binding("b", "cluster-admin", "root")}}
	exempt := editors.Of(rule, headwaterAccount, rbac.ClusterRoles, rbac.ClusterRoleBindings)
	require.Empty(t, editors.Ways(rule, exempt, editors.Own{Account: headwaterAccount}, rbac))
}

// Somebody can be added to a binding that the API server made for a controller.
func TestWhoIsAddedToABindingOfKubernetesIsListed(t *testing.T) {
	everything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"create"}}
	bound := ofKubernetes("system:controller:job-controller", "ServiceAccount", "kube-system", "job-controller")
	bound.Subjects = append(bound.Subjects, rbacv1.Subject{Kind: "User", Name: "mallory"}, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "thief"},
		rbacv1.Subject{Kind: "ServiceAccount", Namespace: "kube-system", Name: "addon"})
	rbac := editors.RBAC{ClusterRoles: []rbacv1.ClusterRole{role("held", everything)}, ClusterRoleBindings: []rbacv1.ClusterRoleBinding{bound}}
	rule := protecttest.BlogRule()
	exempt := editors.Of(rule, headwaterAccount, rbac.ClusterRoles, rbac.ClusterRoleBindings)
	found := map[string]bool{}
	for _, one := range editors.Ways(rule, exempt, editors.Own{Account: headwaterAccount}, rbac) {
		found[one.Subject()] = true
	}
	require.Equal(t, map[string]bool{"User mallory": true, "ServiceAccount default/thief": true, "ServiceAccount kube-system/addon": true}, found)
}
