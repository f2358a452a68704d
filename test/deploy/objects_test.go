package deploy

import (
	"strconv"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
		"receivers that the file names": {"config.notify[0].urlFile=/etc/headwater-notify/slack", apiServerPorts + ", 443, 53 53"},
		"receivers that a Secret holds": {"notify.secretName=urls", apiServerPorts + ", 443, 53 53"},
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

// protecting sets a rule that protects.
var protecting = "config.rules[0].name=guarded,config.rules[0].protect.mode=Enforce," + source(0)

// OpenShift's restricted-v2 refuses a user or a group that is not of the namespace's range.
func TestOnOpenShiftThePodsHaveNoFixedUser(t *testing.T) {
	rendered := template(t, "--values", chartDir+"/values-openshift.yaml")
	for _, pod := range []corev1.PodTemplateSpec{
		object[appsv1.Deployment](t, rendered, "Deployment/"+namespace+"/headwater").Spec.Template,
		object[batchv1.Job](t, rendered, "Job/"+namespace+"/headwater-test").Spec.Template,
	} {
		require.Empty(t, refusals(t, pod))
		context := *pod.Spec.SecurityContext
		require.True(t, *context.RunAsNonRoot)
		context.RunAsNonRoot, context.SeccompProfile = nil, nil
		require.Zero(t, context)
		for _, container := range pod.Spec.Containers {
			require.Nil(t, container.SecurityContext.RunAsUser)
			require.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
		}
	}
}

func TestAnAccountOfAnotherNameHasThePermissions(t *testing.T) {
	for sentence, test := range map[string]struct {
		set     string
		account string
		created bool
	}{
		"the chart's own":             {"serviceAccount.create=true", "headwater", true},
		"one of another name":         {"serviceAccount.name=platform", "platform", true},
		"one that somebody else made": {"serviceAccount.name=platform,serviceAccount.create=false", "platform", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			rendered := template(t, "--set", test.set)
			require.Equal(t, test.account, object[appsv1.Deployment](t, rendered, "Deployment/"+namespace+"/headwater").Spec.Template.Spec.ServiceAccountName)
			want := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: test.account}}
			require.Equal(t, want, object[rbacv1.ClusterRoleBinding](t, rendered, "ClusterRoleBinding//headwater").Subjects)
			require.Equal(t, want, object[rbacv1.RoleBinding](t, rendered, "RoleBinding/"+namespace+"/headwater").Subjects)
			for _, schema := range []string{"headwater", "headwater-leader-election"} {
				flow := object[flowcontrolv1.FlowSchema](t, rendered, "FlowSchema//"+schema)
				require.Equal(t, test.account, flow.Spec.Rules[0].Subjects[0].ServiceAccount.Name)
			}
			_, created := objects(t, rendered)["ServiceAccount/"+namespace+"/"+test.account]
			require.Equal(t, test.created, created)
			require.Contains(t, objects(t, rendered), "ServiceAccount/"+namespace+"/headwater-prober")
		})
	}
}

func TestVolumesAreAddedToTheChartsOwn(t *testing.T) {
	pod := object[appsv1.Deployment](t, template(t, "--values", "testdata/values-everything.yaml"), "Deployment/"+namespace+"/headwater").Spec.Template.Spec
	var volumes, mounts []string
	for _, volume := range pod.Volumes {
		volumes = append(volumes, volume.Name)
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		mounts = append(mounts, mount.MountPath)
	}
	require.Equal(t, []string{"config", "notify", "extra"}, volumes)
	require.Equal(t, []string{"/etc/headwater", "/etc/headwater-notify", "/extra"}, mounts)
}

// The test's pod runs the installed image, with what a person may read, and gets
// no request that is for Headwater.
func TestTheChartsTestRunsHeadwaterItself(t *testing.T) {
	rendered := template(t, "--values", "testdata/values-everything.yaml")
	pod := object[batchv1.Job](t, rendered, "Job/"+namespace+"/headwater-test").Spec.Template
	deployment := object[appsv1.Deployment](t, rendered, "Deployment/"+namespace+"/headwater").Spec
	require.Len(t, pod.Spec.Containers, 1)
	require.Equal(t, deployment.Template.Spec.Containers[0].Image, pod.Spec.Containers[0].Image)
	require.Equal(t, []string{"status", "--wait", "--timeout=2m", "--headwater-namespace=" + namespace}, pod.Spec.Containers[0].Args)
	require.Empty(t, refusals(t, pod))
	selector, err := metav1.LabelSelectorAsSelector(deployment.Selector)
	require.NoError(t, err)
	require.False(t, selector.Matches(labels.Set(pod.Labels)))
	binding := object[rbacv1.ClusterRoleBinding](t, rendered, "ClusterRoleBinding//headwater-test")
	require.Equal(t, "headwater-view", binding.RoleRef.Name)
	require.Equal(t, pod.Spec.ServiceAccountName, binding.Subjects[0].Name)
	for key, policy := range map[string]string{
		"Job/" + namespace + "/headwater-test":            "before-hook-creation,hook-succeeded", // its log says what failed
		"ServiceAccount/" + namespace + "/headwater-test": "before-hook-creation,hook-succeeded,hook-failed",
		"ClusterRoleBinding//headwater-test":              "before-hook-creation,hook-succeeded,hook-failed",
	} {
		annotations := object[metav1.PartialObjectMetadata](t, metadataOf(t, rendered, key), key).Annotations
		require.Equal(t, "test", annotations["helm.sh/hook"], key)
		require.Equal(t, policy, annotations["helm.sh/hook-delete-policy"], key)
	}
	job := object[batchv1.Job](t, rendered, "Job/"+namespace+"/headwater-test").Spec
	require.NotNil(t, job.TTLSecondsAfterFinished)
	require.NotNil(t, job.ActiveDeadlineSeconds)
	require.NotContains(t, template(t, "--set", "rbac.people=false"), "headwater-test", "it would bind a ClusterRole that is not there")
}

// metadataOf returns the object of key without its other fields.
func metadataOf(t *testing.T, rendered, key string) string {
	t.Helper()
	all, ok := objects(t, rendered)[key].(map[string]any)
	require.True(t, ok, key)
	text, err := yaml.Marshal(map[string]any{"apiVersion": all["apiVersion"], "kind": all["kind"], "metadata": all["metadata"]})
	require.NoError(t, err)
	return string(text)
}

func TestMetricsAreReadAsTheValuesSay(t *testing.T) {
	const service, pod = "metrics.serviceMonitor.enabled=true", "metrics.podMonitor.enabled=true"
	const auth, token = ",metrics.auth=true", ",metrics.authorization.credentials.name=scraper,metrics.authorization.credentials.key=token"
	verify := ",metrics.verifyTLS=true," + protecting
	secret := func(name string) monitoringv1.SafeTLSConfig {
		server := "headwater-webhook." + namespace + ".svc"
		return monitoringv1.SafeTLSConfig{ServerName: &server, CA: monitoringv1.SecretOrConfigMap{
			Secret: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "ca.crt"},
		}}
	}
	unverified := true
	insecure := monitoringv1.SafeTLSConfig{InsecureSkipVerify: &unverified}
	for sentence, test := range map[string]struct {
		set       string
		tls       *monitoringv1.SafeTLSConfig
		token     string
		tokenFile bool
	}{
		"a ServiceMonitor without auth":               {set: service},
		"a PodMonitor without auth":                   {set: pod},
		"a ServiceMonitor with Prometheus's token":    {service + auth, &insecure, "", true},
		"a ServiceMonitor with a token of its own":    {service + auth + token, &insecure, "scraper", false},
		"a PodMonitor with a token":                   {pod + auth + token, &insecure, "scraper", false},
		"a ServiceMonitor that verifies":              {service + auth + verify, new(secret("headwater-webhook-tls")), "", true},
		"a PodMonitor that verifies":                  {pod + auth + token + verify, new(secret("headwater-webhook-tls")), "scraper", false},
		"a ServiceMonitor and a provided certificate": {service + auth + verify + ",config.protect.certificates.secretName=given", new(secret("given")), "", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			rendered := template(t, "--set", test.set)
			var scheme, file, port string
			var tlsConfig *monitoringv1.SafeTLSConfig
			var authorization *monitoringv1.SafeAuthorization
			if strings.HasPrefix(test.set, service) {
				endpoint := object[monitoringv1.ServiceMonitor](t, rendered, "ServiceMonitor/"+namespace+"/headwater").Spec.Endpoints[0]
				port, file, authorization = endpoint.Port, endpoint.BearerTokenFile, endpoint.Authorization //nolint:staticcheck // nothing else sends Prometheus's own token
				scheme = endpoint.Scheme.String()
				if endpoint.TLSConfig != nil {
					tlsConfig = &endpoint.TLSConfig.SafeTLSConfig
				}
			} else {
				monitor := object[monitoringv1.PodMonitor](t, rendered, "PodMonitor/"+namespace+"/headwater").Spec
				labels := object[appsv1.Deployment](t, rendered, "Deployment/"+namespace+"/headwater").Spec.Template.Labels
				require.Subset(t, labels, monitor.Selector.MatchLabels)
				endpoint := monitor.PodMetricsEndpoints[0]
				port, scheme, tlsConfig, authorization = *endpoint.Port, endpoint.Scheme.String(), endpoint.TLSConfig, endpoint.Authorization
			}
			require.Equal(t, "metrics", port)
			require.Equal(t, test.tls, tlsConfig)
			require.Equal(t, test.tls != nil, scheme == "https")
			require.Equal(t, test.tokenFile, file != "")
			require.Equal(t, test.token != "", authorization != nil)
			if authorization != nil {
				require.Equal(t, test.token, authorization.Credentials.Name)
			}
		})
	}
}

func TestThePrometheusOperatorKnowsWhatItIsGiven(t *testing.T) {
	rendered := template(t, "--values", "testdata/values-everything.yaml")
	monitor := object[monitoringv1.ServiceMonitor](t, rendered, "ServiceMonitor/"+namespace+"/headwater")
	service := object[corev1.Service](t, rendered, "Service/"+namespace+"/headwater-metrics")
	require.Subset(t, service.Labels, monitor.Spec.Selector.MatchLabels)
	require.Equal(t, service.Spec.Ports[0].Name, monitor.Spec.Endpoints[0].Port)
	require.NotEmpty(t, object[monitoringv1.PrometheusRule](t, rendered, "PrometheusRule/"+namespace+"/headwater").Spec.Groups)
}
