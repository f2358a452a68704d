package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/validate"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func noGuard(r *spec.Rule) {
	guard := false
	r.GuardNamespace = &guard
}

func names(config *admissionregistrationv1.ValidatingWebhookConfiguration) (names []string) {
	for _, webhook := range config.Webhooks {
		names = append(names, webhook.Name+" "+string(*webhook.FailurePolicy))
	}
	return names
}

func TestConfigurationOfNoRules(t *testing.T) {
	require.Nil(t, manifests.Configuration(rules.NewSet[spec.Rule](), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), []byte("bundle")))
}

func TestConfigurationWithoutGuards(t *testing.T) {
	config := manifests.Configuration(rules.NewSet(protecttest.BlogRule(noGuard)), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), nil)
	require.Equal(t, []string{"sources.protect.headwater.dev Fail", "marks.protect.headwater.dev Fail"}, names(config))
}

func TestOutageNeverBlocksWhatIsOnlyObserved(t *testing.T) {
	set := rules.NewSet(
		protecttest.NewRule("warned", object.Secret, "platform", "a", func(r *spec.Rule) { r.Mode = spec.Warn }),
		protecttest.NewRule("enforced", object.Secret, "platform", "b"),
		protecttest.NewRule("audited", object.Secret, "other", "c", func(r *spec.Rule) { r.Mode = spec.Audit }),
	)
	config := manifests.Configuration(set, protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), nil)
	require.Equal(t, []string{
		"sources.protect.headwater.dev Fail", "observed-sources.protect.headwater.dev Ignore",
		"namespaces.protect.headwater.dev Fail", "observed-namespaces.protect.headwater.dev Ignore",
		"observed-namespaces-2.protect.headwater.dev Ignore", "marks.protect.headwater.dev Fail",
	}, names(config))
	condition := func(webhook, i int) string { return config.Webhooks[webhook].MatchConditions[i].Expression }
	require.Contains(t, condition(0, 0), `in ["CREATE secrets/platform/b", "DELETE secrets/platform/b", "UPDATE secrets/platform/b"]`)
	require.Contains(t, condition(2, 0), `in ["platform"]`)
	require.Contains(t, condition(2, 2), `{"platform": "enforced"}`)
	require.Contains(t, condition(1, 0), `in ["CREATE secrets/other/c", "CREATE secrets/platform/a", "DELETE secrets/other/c", "DELETE secrets/platform/a", "UPDATE secrets/other/c", "UPDATE secrets/platform/a"]`)
	require.Contains(t, condition(3, 0), `in ["other"]`)
	require.Contains(t, condition(4, 2), `{"platform": "warned"}`)
}

func TestConfigurationOfSourcesBySelector(t *testing.T) {
	config := manifests.Configuration(rules.NewSet(protecttest.SelectingRule(func(r *spec.Rule) { r.Operations = []spec.Operation{spec.Create, spec.Delete} })), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), nil)
	require.Equal(t, []string{"namespaces.protect.headwater.dev Fail", "shared.selected.protect.headwater.dev Fail", "marks.protect.headwater.dev Fail"}, names(config))
	webhook := config.Webhooks[1]
	require.Equal(t, []string{"platform"}, webhook.NamespaceSelector.MatchExpressions[0].Values)
	require.Equal(t, map[string]string{"share": "yes"}, webhook.ObjectSelector.MatchLabels)
	require.Equal(t, []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "DELETE"}, webhook.Rules[0].Operations)
	require.Equal(t, []string{"secrets"}, webhook.Rules[0].Resources)
}

func TestConfigurationOfClones(t *testing.T) {
	config := manifests.Configuration(rules.NewSet(
		protecttest.BlogRule(noGuard, func(r *spec.Rule) { r.Clones, r.Mode = spec.Deny, spec.Warn }), protecttest.NewRule("free", object.Secret, "platform", "free", noGuard),
		protecttest.NewRule("ca", object.ConfigMap, "platform", "ca", noGuard, func(r *spec.Rule) { r.Clones, r.Operations = spec.Deny, []spec.Operation{spec.Delete} }),
	), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), nil)
	require.Equal(t, []string{
		"sources.protect.headwater.dev Fail", "observed-sources.protect.headwater.dev Ignore",
		"clones.protect.headwater.dev Fail", "observed-clones.protect.headwater.dev Ignore", "marks.protect.headwater.dev Fail",
	}, names(config))
	clones := config.Webhooks[2]
	require.Equal(t, map[string]string{"headwater.dev/clone": "true"}, clones.ObjectSelector.MatchLabels)
	require.Equal(t, []admissionregistrationv1.OperationType{"UPDATE", "DELETE"}, clones.Rules[0].Operations)
	marks := config.Webhooks[4]
	require.Equal(t, []metav1.LabelSelectorRequirement{{Key: "headwater.dev/clone", Operator: "Exists"}}, marks.ObjectSelector.MatchExpressions)
	require.Equal(t, []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}, marks.Rules[0].Operations)
	require.Len(t, marks.MatchConditions, 1, "the API server evaluates all there are, for each clone that Headwater writes")
	require.True(t, strings.HasPrefix(marks.MatchConditions[0].Expression, clones.MatchConditions[2].Expression+" && "))
}

func TestConfigurationThatOnlyObservesGuardsNoMarks(t *testing.T) {
	config := manifests.Configuration(rules.NewSet(protecttest.BlogRule(noGuard, func(r *spec.Rule) { r.Mode = spec.Audit })), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), nil)
	require.Equal(t, []string{"observed-sources.protect.headwater.dev Ignore", "observed-marks.protect.headwater.dev Ignore"}, names(config))
}

// askedBy is what a webhook checks, and the rules whose override it respects.
func askedBy(webhook admissionregistrationv1.ValidatingWebhook) string {
	last := webhook.MatchConditions[len(webhook.MatchConditions)-1].Expression
	_, override, _ := strings.Cut(last, ".name(")
	override, _, _ = strings.Cut(override, "[")
	return *webhook.ClientConfig.Service.Path + " " + override
}

func TestRulesThatGuardOneNamespaceAreAskedAboutOneByOne(t *testing.T) {
	config := manifests.Configuration(rules.NewSet(
		protecttest.NewRule("audited", object.Secret, "platform", "a", func(r *spec.Rule) { r.Mode = spec.Audit }),
		protecttest.NewRule("enforced", object.Secret, "platform", "b"),
		protecttest.NewRule("strict", object.Secret, "platform", "c"),
		protecttest.NewRule("alone", object.Secret, "other", "d"),
	), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), nil)
	require.Equal(t, []string{
		"sources.protect.headwater.dev Fail", "observed-sources.protect.headwater.dev Ignore",
		"namespaces.protect.headwater.dev Fail", "namespaces-2.protect.headwater.dev Fail", "namespaces-3.protect.headwater.dev Fail",
		"observed-namespaces.protect.headwater.dev Ignore", "marks.protect.headwater.dev Fail",
	}, names(config))
	var asked []string
	for _, webhook := range config.Webhooks[2:6] {
		asked = append(asked, askedBy(webhook))
	}
	require.Equal(t, []string{
		`/validate/namespaces {"other": "alone"}`, `/validate/namespaces/enforced {"platform": "enforced"}`,
		`/validate/namespaces/strict {"platform": "strict"}`, `/validate/namespaces/audited {"platform": "audited"}`,
	}, asked)
}

func TestTheWebhooksAreBounded(t *testing.T) {
	for sentence, tc := range map[string]struct{ rules, namespaces, want int }{
		"one rule":                             {1, 1, 3},
		"rules in namespaces of their own":     {50, 50, 3},
		"three rules in each namespace":        {45, 15, 5},
		"as many in one as count one by one":   {20, 1, 22},
		"so many in one that all count as one": {50, 1, 3},
	} {
		t.Run(sentence, func(t *testing.T) {
			var all []spec.Rule
			for i := range tc.rules {
				all = append(all, protecttest.NewRule(fmt.Sprintf("r%03d", i), object.Secret, fmt.Sprintf("n%d", i%tc.namespaces), fmt.Sprintf("s%d", i)))
			}
			require.Len(t, names(manifests.Configuration(rules.NewSet(all...), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), nil)), tc.want)
		})
	}
}

func TestConfigurationDependsOnTheRulesOnly(t *testing.T) {
	a, b := protecttest.BlogRule(), protecttest.NewRule("ca", object.ConfigMap, "certs", "ca-bundle")
	one := manifests.Configuration(rules.NewSet(a, b), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), nil)
	require.Equal(t, one, manifests.Configuration(rules.NewSet(b, a), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), nil), "and not on their order")
}

func TestExpressionsStayWithinWhatCELTakes(t *testing.T) {
	var many []spec.Rule
	for i := range 250 {
		name := func(length int) string { return fmt.Sprintf("%03d", i) + strings.Repeat("x", length-3) }
		many = append(many, protecttest.NewRule(name(63), object.ConfigMap, name(63), name(253)))
	}
	config := manifests.Configuration(rules.NewSet(many...), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), nil)
	require.Equal(t, []string{
		"sources.protect.headwater.dev Fail", "sources-2.protect.headwater.dev Fail", "sources-3.protect.headwater.dev Fail",
		"sources-4.protect.headwater.dev Fail", "sources-5.protect.headwater.dev Fail",
		"namespaces.protect.headwater.dev Fail", "namespaces-2.protect.headwater.dev Fail", "marks.protect.headwater.dev Fail",
	}, names(config))
	for _, webhook := range config.Webhooks {
		for _, condition := range webhook.MatchConditions {
			require.Less(t, len(condition.Expression), 100_000)
		}
	}
}

func TestLiteralCannotBeBrokenOutOf(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"a plain name":      {`blogsecret`, `"blogsecret"`},
		"a quote":           {`a" || true || "`, `"a\" || true || \""`},
		"a backslash":       {`a\`, `"a\\"`},
		"a single quote":    {`it's`, `"it's"`},
		"a line break":      {"a\nb", `"a\nb"`},
		"a control":         {"a\x00\x7f", `"a\x00\x7f"`},
		"a character":       {"ä€😀", `"\u00e4\u20ac\U0001f600"`},
		"what is not UTF-8": {"a\xff", `"a\ufffd"`},
		"a line separator":  {"a\u2028", `"a\u2028"`},
		"a template":        {"${x}`", "\"${x}`\""},
	} {
		t.Run(name, func(t *testing.T) {
			config := manifests.Configuration(rules.NewSet(protecttest.BlogRule()), tc.in, manifests.FailClosed, protecttest.Endpoint(t), nil)
			require.Contains(t, config.Webhooks[0].MatchConditions, admissionregistrationv1.MatchCondition{
				Name: "not-headwater", Expression: notHeadwater(tc.want),
			})
		})
	}
}

// notImpersonated is what the API server evaluates to see that nobody else acts as a
// service account.
const notImpersonated = `(!request.userInfo.username.startsWith("system:serviceaccount:") || request.userInfo.?uid.orValue("") != "")`

func notHeadwater(name string) string {
	return "!(request.userInfo.username == " + name + " && " + notImpersonated + ")"
}

// marksOf returns where the webhook that guards marks is served.
func marksOf(endpoint spec.Endpoint) admissionregistrationv1.WebhookClientConfig {
	webhooks := manifests.Configuration(rules.NewSet(protecttest.BlogRule()), protecttest.HeadwaterUser, manifests.FailClosed, endpoint, nil).Webhooks
	return webhooks[len(webhooks)-1].ClientConfig
}

func TestNewEndpoint(t *testing.T) {
	t.Run("a Service", func(t *testing.T) {
		endpoint := protecttest.Endpoint(t)
		require.Equal(t, []string{
			"headwater-webhook.headwater", "headwater-webhook.headwater.svc", "headwater-webhook.headwater.svc.cluster.local",
		}, endpoint.Hosts.Names)
		require.Nil(t, marksOf(endpoint).URL)
	})
	for url, want := range map[string]string{
		"https://127.0.0.1:9443":       "https://127.0.0.1:9443/validate/marks",
		"https://127.0.0.1:9443/":      "https://127.0.0.1:9443/validate/marks",
		"https://hooks.example.com/hw": "https://hooks.example.com/hw/validate/marks",
		"https://[::1]:9443":           "https://[::1]:9443/validate/marks",
	} {
		t.Run(url, func(t *testing.T) {
			endpoint, err := spec.NewEndpoint(url, "headwater")
			require.NoError(t, err)
			require.Equal(t, want, *marksOf(endpoint).URL)
			require.Nil(t, marksOf(endpoint).Service)
			require.Equal(t, 1, len(endpoint.Hosts.Names)+len(endpoint.Hosts.IPs))
		})
	}
	for _, url := range []string{"http://127.0.0.1:9443", "127.0.0.1:9443", "https://", "https://u:p@host", "https://host?x=y", "https://host#x", ":"} {
		t.Run("refused: "+url, func(t *testing.T) {
			_, err := spec.NewEndpoint(url, "headwater")
			require.ErrorContains(t, err, "webhook URL")
			require.NotContains(t, err.Error(), "u:p")
		})
	}
}

func TestTheWebhookOfTheConfigurationAsksAboutOneConfigMapAndFailsOpen(t *testing.T) {
	webhook := manifests.ConfigurationWebhook(decide.OwnConfiguration{Namespace: "own", Name: "headwater"}, protecttest.Endpoint(t), []byte("ca"))
	require.Equal(t, "configuration.protect.headwater.dev", webhook.Name)
	require.Equal(t, admissionregistrationv1.Ignore, *webhook.FailurePolicy)
	require.Equal(t, []string{"own"}, webhook.NamespaceSelector.MatchExpressions[0].Values)
	require.Equal(t, `object.metadata.name == "headwater"`, webhook.MatchConditions[0].Expression)
	require.Equal(t, []string{"configmaps"}, webhook.Rules[0].Resources)
	require.Equal(t, []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}, webhook.Rules[0].Operations)
}

func TestTheWebhookThatTheProverReachesRefusesOneConfigMapAndFailsOpen(t *testing.T) {
	webhook := manifests.ReachWebhook("own", protecttest.Endpoint(t), []byte("ca"))
	require.Equal(t, "reach.protect.headwater.dev", webhook.Name)
	require.Equal(t, admissionregistrationv1.Ignore, *webhook.FailurePolicy)
	require.Equal(t, []string{"own"}, webhook.NamespaceSelector.MatchExpressions[0].Values)
	require.Equal(t, `object.metadata.name == "headwater-reach"`, webhook.MatchConditions[0].Expression)
	require.Equal(t, []admissionregistrationv1.OperationType{admissionregistrationv1.Create}, webhook.Rules[0].Operations)
}

func TestContentIsCheckedWhateverTheOperationsOfItsRule(t *testing.T) {
	checks, err := validate.Compile(validate.Checks{{Key: "k", Is: validate.YAML}})
	require.NoError(t, err)
	deletions := func(r *spec.Rule) {
		r.Validator, r.Operations, r.GuardNamespace = checks, []spec.Operation{spec.Delete}, new(false)
	}
	everything := func(r *spec.Rule) { r.Validator, r.GuardNamespace = checks, new(false) }
	for name, test := range map[string]struct {
		rule spec.Rule
		want []string
	}{
		"a named source protected from deletion":    {protecttest.BlogRule(deletions), []string{"sources.protect.headwater.dev Fail", "content.protect.headwater.dev Ignore"}},
		"a selected source protected from deletion": {protecttest.SelectingRule(deletions), []string{"shared.selected.protect.headwater.dev Fail", "shared.content.protect.headwater.dev Ignore"}},
		"a source whose webhook is asked anyway":    {protecttest.BlogRule(everything), []string{"sources.protect.headwater.dev Fail"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := manifests.Configuration(rules.NewSet(test.rule), protecttest.HeadwaterUser, manifests.FailClosed, protecttest.Endpoint(t), nil)
			require.Equal(t, append(test.want, "marks.protect.headwater.dev Fail"), names(config))
		})
	}
	config := manifests.Configuration(rules.NewSet(protecttest.BlogRule(deletions)), protecttest.HeadwaterUser, manifests.FailOpen, protecttest.Endpoint(t), nil)
	require.Contains(t, config.Webhooks[1].MatchConditions[0].Expression, `in ["CREATE secrets/platform/blogsecret", "UPDATE secrets/platform/blogsecret"]`)
	require.Len(t, config.Webhooks[1].MatchConditions, 3, "plain edits are not excluded")
}
