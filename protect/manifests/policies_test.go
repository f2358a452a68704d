package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/decidetest"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// What the API server is given is written down in internal/app/pins; test/cel and an end-to-end
// test show that it decides like Decide.

func policyNames(policies []manifests.Policy) (names []string) {
	for _, p := range policies {
		names = append(names, p.Definition.Name+" "+string(p.Binding.Spec.ValidationActions[0]))
	}
	return names
}

func TestPolicies(t *testing.T) {
	guarded := protecttest.BlogRule()
	warned := protecttest.NewRule("warned", object.Secret, "platform", "a", noGuard, func(r *spec.Rule) { r.Mode = spec.Warn })
	audited := protecttest.NewRule("audited", object.ConfigMap, "other", "b", noGuard, func(r *spec.Rule) { r.Mode, r.Clones = spec.Audit, spec.Deny })
	for sentence, tc := range map[string]struct {
		rules []spec.Rule
		modes []spec.Mode
		world decide.World
		want  []string
	}{
		"one rule that enforces": {
			[]spec.Rule{guarded}, []spec.Mode{spec.Enforce}, decidetest.NewWorld(), []string{"headwater-sources Deny", "headwater-namespaces Deny", "headwater-clones Deny"},
		},
		"a namespace that holds no source is not guarded": {
			[]spec.Rule{guarded},
			[]spec.Mode{spec.Enforce},
			decidetest.NewWorld(func(w *decide.World) { w.HasSource = func(spec.Rule) bool { return false } }),
			[]string{"headwater-sources Deny", "headwater-clones Deny"},
		},
		"each mode has its own, and the strictest guards the marks": {
			[]spec.Rule{audited, warned},
			[]spec.Mode{spec.Enforce, spec.Warn, spec.Audit},
			decidetest.NewWorld(),
			[]string{"headwater-sources-warn Warn", "headwater-clones-warn Warn", "headwater-sources-audit Audit", "headwater-clones-audit Audit"},
		},
		"of other modes there are none": {[]spec.Rule{audited, warned}, []spec.Mode{spec.Enforce}, decidetest.NewWorld(), nil},
		"without a rule there are none": {nil, []spec.Mode{spec.Enforce, spec.Warn, spec.Audit}, decidetest.NewWorld(), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, tc.want, policyNames(manifests.Policies(rules.NewSet(tc.rules...), tc.world, tc.modes...)))
		})
	}
}

func TestPoliciesBearNamesThatPermissionsKnow(t *testing.T) {
	names := manifests.PolicyNames()
	all := append(manifests.Policies(rules.NewSet(protecttest.BlogRule(), protecttest.NewRule("warned", object.Secret, "b", "b", func(r *spec.Rule) { r.Mode = spec.Warn }),
		protecttest.NewRule("audited", object.Secret, "c", "c", func(r *spec.Rule) { r.Mode = spec.Audit })), decidetest.NewWorld(), spec.Enforce, spec.Warn, spec.Audit), manifests.SelfPolicy(decidetest.NewWorld()))
	for _, p := range all {
		require.Contains(t, names, p.Definition.Name)
		require.Equal(t, p.Definition.Name, p.Binding.Name)
		require.Equal(t, p.Definition.Name, p.Binding.Spec.PolicyName)
		require.Empty(t, apivalidation.IsDNS1123Subdomain(p.Definition.Name))
		require.Equal(t, admissionregistrationv1.Fail, *p.Definition.Spec.FailurePolicy, "an error never lets pass")
	}
}

func TestPoliciesDependOnTheRulesOnly(t *testing.T) {
	a, b := protecttest.BlogRule(), protecttest.NewRule("ca", object.ConfigMap, "certs", "ca-bundle")
	require.Equal(t, manifests.Policies(rules.NewSet(a, b), decidetest.NewWorld(), spec.Enforce), manifests.Policies(rules.NewSet(b, a), decidetest.NewWorld(), spec.Enforce), "and not on their order")
}

func TestPoliciesNameWhoMay(t *testing.T) {
	rule := protecttest.BlogRule(func(r *spec.Rule) {
		r.Allow = spec.Allow{
			ClusterRoles: []string{"platform-admin"}, Users: []string{"jane"}, Groups: []string{"ops"},
			ServiceAccounts: []spec.ServiceAccount{{Namespace: "cd", Name: "robot"}},
		}
	})
	same := protecttest.NewRule("same", object.Secret, "platform", "same", func(r *spec.Rule) { r.Allow = rule.Allow })
	world := decidetest.NewWorld(func(w *decide.World) {
		w.Holders = func(string) []string {
			return decide.PrincipalsOf([]rbacv1.Subject{
				{Kind: rbacv1.UserKind, Name: "root"},
				{Kind: rbacv1.GroupKind, Name: "admins"},
				{Kind: rbacv1.ServiceAccountKind, Namespace: "flux", Name: "flux"},
				{Kind: "Alien", Name: "alien"},
			})
		}
	})
	policy := manifests.Policies(rules.NewSet(rule, same), world, spec.Enforce)[0].Definition
	var allowed []string
	for _, variable := range policy.Spec.Variables {
		if strings.HasPrefix(variable.Name, "allowed") {
			allowed = append(allowed, variable.Expression)
		}
	}
	require.Equal(t, []string{
		`request.userInfo.username in ["jane", "root", "system:serviceaccount:cd:robot", "system:serviceaccount:flux:flux"]`,
		`request.userInfo.?groups.orValue([]).exists(group, group in ["admins", "ops"])`,
	}, allowed, "once, for both rules")
}

func TestPoliciesStayWithinWhatCELTakes(t *testing.T) {
	var many []spec.Rule
	for i := range 250 {
		name := func(length int) string { return fmt.Sprintf("%03d", i) + strings.Repeat("x", length-3) }
		many = append(many, protecttest.NewRule(name(63), object.ConfigMap, name(63), name(253)))
	}
	world := decidetest.NewWorld(func(w *decide.World) {
		var names []string
		for i := range 2000 {
			names = append(names, fmt.Sprintf("%04d", i)+strings.Repeat("x", 249))
		}
		w.SystemIdentities = names
		w.Holders = func(string) (all []string) {
			for _, name := range names {
				all = append(all, decide.UserPrincipal+name)
			}
			return all
		}
	})
	for _, p := range manifests.Policies(rules.NewSet(many...), world, spec.Enforce) {
		spec := p.Definition.Spec
		for _, variable := range spec.Variables {
			require.Less(t, len(variable.Expression), 100_000, variable.Name)
		}
		for _, condition := range spec.MatchConditions {
			require.Less(t, len(condition.Expression), 100_000, condition.Name)
		}
		for _, validation := range spec.Validations {
			require.Less(t, len(validation.Expression), 100_000)
		}
	}
}
