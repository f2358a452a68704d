package editors_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/protect/editors"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const alice = "alice"

func binding(name, role string, users ...string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, user := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: user})
	}
	return b
}

func role(name string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func overriding(names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"headwater.dev"}, Resources: []string{"protectedobjects"}, Verbs: []string{"override"}, ResourceNames: names}
}

func TestEditorsAreListedWithTheirGrants(t *testing.T) {
	anything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	rule := protecttest.BlogRule(func(r *spec.Rule) {
		r.Allow = spec.Allow{
			ClusterRoles: []string{"owner", "cluster-admin"}, Users: []string{alice}, Groups: []string{"ops"},
			ServiceAccounts: []spec.ServiceAccount{{Namespace: "ci", Name: "deployer"}},
		}
	})
	listed := editors.Of(rule, spec.ServiceAccount{Namespace: "headwater-system", Name: "headwater"},
		[]rbacv1.ClusterRole{role("cluster-admin", anything), role("owner"), role("breaker", overriding("blogsecret")), role("reader")},
		[]rbacv1.ClusterRoleBinding{
			*binding("admins", "cluster-admin", "root"), *binding("owners", "owner", "owen"),
			*binding("breakers", "breaker", "bob"), *binding("readers", "reader", "rita"),
		})
	listed = append(listed, editors.Writers([]string{"wanda", "system:serviceaccount:cd:argo"})...)
	var lines []string
	for _, editor := range listed {
		lines = append(lines, editor.Subject()+": "+editor.Through())
	}
	require.Equal(t, []string{
		"Group ops: listed in the rule",
		"Group system:masters: the API server, which allows it everything",
		"ServiceAccount ci/deployer: listed in the rule",
		"ServiceAccount headwater-system/headwater: is Headwater itself",
		"User alice: listed in the rule",
		"User bob: verb override in ClusterRole breaker, through ClusterRoleBinding breakers",
		"User owen: ClusterRole owner of the rule, through ClusterRoleBinding owners",
		"User root: ClusterRole cluster-admin of the rule, through ClusterRoleBinding admins",
		"User root: verb override in ClusterRole cluster-admin, through ClusterRoleBinding admins",
		"User wanda: listed in guard.writers of the chart: may change Headwater's own workloads and its configuration",
		"ServiceAccount cd/argo: listed in guard.writers of the chart: may change Headwater's own workloads and its configuration",
	}, lines)
}

func TestOverridesAsTheAuthorizerDecides(t *testing.T) {
	changed := func(change func(*rbacv1.PolicyRule)) rbacv1.PolicyRule {
		granted := overriding()
		change(&granted)
		return granted
	}
	for sentence, test := range map[string]struct {
		granted rbacv1.PolicyRule
		want    bool
	}{
		"the verb for every rule":             {overriding(), true},
		"the verb for this rule":              {overriding("a", "blogsecret"), true},
		"the verb for another":                {overriding("a"), false},
		"a star is no name":                   {overriding("*"), false},
		"any verb":                            {changed(func(r *rbacv1.PolicyRule) { r.Verbs = []string{"*"} }), true},
		"any group":                           {changed(func(r *rbacv1.PolicyRule) { r.APIGroups = []string{"*"} }), true},
		"any resource":                        {changed(func(r *rbacv1.PolicyRule) { r.Resources = []string{"*"} }), true},
		"another verb":                        {changed(func(r *rbacv1.PolicyRule) { r.Verbs = []string{"update"} }), false},
		"another group":                       {changed(func(r *rbacv1.PolicyRule) { r.APIGroups = []string{""} }), false},
		"another resource":                    {changed(func(r *rbacv1.PolicyRule) { r.Resources = []string{"secrets"} }), false},
		"subresources are not the resource":   {changed(func(r *rbacv1.PolicyRule) { r.Resources = []string{"*/status"} }), false},
		"paths outside the API grant nothing": {rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			listed := editors.Of(protecttest.BlogRule(), spec.ServiceAccount{}, []rbacv1.ClusterRole{role("breaker", test.granted)},
				[]rbacv1.ClusterRoleBinding{*binding("breakers", "breaker", "bob")})
			found := slices.ContainsFunc(listed, func(e editors.Editor) bool { return e.Name == "bob" && e.Grant == editors.GrantOverride })
			require.Equal(t, test.want, found)
		})
	}
}
