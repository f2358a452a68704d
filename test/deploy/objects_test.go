package deploy

import (
	"strconv"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// object is the one of this key among what was rendered; a field that its type
// does not have fails the test.
func object[T any](t *testing.T, rendered, key string) T {
	t.Helper()
	all := objects(t, rendered)
	require.Contains(t, all, key)
	text, err := yaml.Marshal(all[key])
	require.NoError(t, err)
	var typed T
	require.NoError(t, yaml.UnmarshalStrict(text, &typed))
	return typed
}

// refusals are why a namespace of restricted pods does not admit one like this.
func refusals(t *testing.T, pod corev1.PodTemplateSpec) []string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	require.NoError(t, err)
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	return policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)).ForbiddenReasons
}

// What an auditor or a drain asks for is there whatever the values say, and so is
// what pod security does, but for the one value that says otherwise.
func TestPodsAreRestrictedAlways(t *testing.T) {
	for _, args := range [][]string{nil, {"--values", "testdata/values-everything.yaml"}, {"--values", "testdata/values-least.yaml"}} {
		pod := object[appsv1.Deployment](t, template(t, args...), "Deployment/"+namespace+"/headwater").Spec.Template
		if pod.Spec.HostNetwork {
			require.Equal(t, []string{"host namespaces"}, refusals(t, pod))
			require.Equal(t, corev1.DNSClusterFirstWithHostNet, pod.Spec.DNSPolicy)
			pod.Spec.HostNetwork = false
		}
		require.Empty(t, refusals(t, pod))
		require.Equal(t, "system-cluster-critical", pod.Spec.PriorityClassName)
		require.EqualValues(t, 65532, *pod.Spec.SecurityContext.RunAsUser)
		for _, container := range pod.Spec.Containers {
			require.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
			require.Equal(t, "128Mi", container.Resources.Requests.Memory().String())
			for _, mount := range container.VolumeMounts {
				require.Empty(t, mount.SubPath, "would never change")
			}
		}
		for name := range pod.Annotations {
			require.NotContains(t, name, "checksum")
		}
	}
}

func TestTheNetworkPolicyLetsOutWhatTheConfigurationAsksFor(t *testing.T) {
	for sentence, test := range map[string]struct{ set, want string }{
		"the API server alone":          {"", apiServerPorts},
		"receivers that the file names": {"config.notify[0].urlFile=/etc/headwater-notify/slack", apiServerPorts + ", 443 53 53"},
		"receivers that a Secret holds": {"notify.secretName=urls", apiServerPorts + ", 443 53 53"},
		"pods that are posted to, each port once": {
			posting(0, "9090") + "," + posting(1, "8081") + "," + posting(2, "9090"), apiServerPorts + ", 9090 8081",
		},
		"a rule that refreshes and tells nobody": {"config.rules[0].name=quiet,config.rules[0].reload.action=Refresh," + source(0), apiServerPorts},
		"what else is named":                     {"networkPolicy.extraEgress[0].ports[0].port=8443", apiServerPorts + ", 8443"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			found := object[networkingv1.NetworkPolicy](t, template(t, "--set", test.set), "NetworkPolicy/"+namespace+"/headwater")
			require.Equal(t, test.want, egress(found))
		})
	}
}

// egress is what the policy lets out: the ports of each rule.
func egress(policy networkingv1.NetworkPolicy) string {
	rules := make([]string, 0, len(policy.Spec.Egress))
	for _, rule := range policy.Spec.Egress {
		ports := make([]string, 0, len(rule.Ports))
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.String())
		}
		rules = append(rules, strings.Join(ports, " "))
	}
	return strings.Join(rules, ", ")
}

const apiServerPorts = "443 6443"

func source(i int) string {
	at := "config.rules[" + strconv.Itoa(i) + "].source."
	return at + "kind=Secret," + at + "namespace=platform," + at + "name=shared"
}

// posting sets rule i to tell pods at port of their new files.
func posting(i int, port string) string {
	at := "config.rules[" + strconv.Itoa(i) + "]."
	return at + "name=posting-" + strconv.Itoa(i) + "," + source(i) + "," + at + "reload.then.httpPost.port=" + port
}

func TestThePrometheusOperatorKnowsWhatItIsGiven(t *testing.T) {
	rendered := template(t, "--values", "testdata/values-everything.yaml")
	monitor := object[monitoringv1.ServiceMonitor](t, rendered, "ServiceMonitor/"+namespace+"/headwater")
	service := object[corev1.Service](t, rendered, "Service/"+namespace+"/headwater-metrics")
	require.Subset(t, service.Labels, monitor.Spec.Selector.MatchLabels)
	require.Equal(t, service.Spec.Ports[0].Name, monitor.Spec.Endpoints[0].Port)
	require.NotEmpty(t, object[monitoringv1.PrometheusRule](t, rendered, "PrometheusRule/"+namespace+"/headwater").Spec.Groups)
}
