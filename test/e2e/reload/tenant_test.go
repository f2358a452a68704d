package reload

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/explain"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// tenant returns a user with the permissions of ClusterRole view in namespace, which does
// not grant to read Secrets.
func (e *env) tenant(namespace string) string {
	e.Helper()
	read := []string{"get", "list", "watch"}
	e.ClusterRole(namespace+"-view",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "pods", "serviceaccounts", "namespaces"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{appsv1.GroupName}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: read})
	tenant := "system:serviceaccount:" + namespace + ":tenant"
	e.Grant(namespace, namespace+"-view", tenant)
	return tenant
}

// The permissions of a tenant are those of ClusterRole view in one namespace, which does
// not grant to read Secrets.
func TestATenantExplainsTheirOwnDeployment(t *testing.T) {
	e, namespace := newStage(t, "tenant")
	e.Secret(namespace, "own", map[string]string{"k": "s3cret"})
	e.Deployment(namespace, "web", lab.ByEnv("shared", "used"), nil)
	e.Deployment(namespace, "asks", lab.ByEnvFrom("own"), map[string]string{mark.Reload: "Auto"})
	h := e.Reloads("tenant")
	e.Adopted(h, namespace, "web", "asks")
	tenant := e.tenant(namespace)
	file := e.ConfigFile(lab.ReloadRule("tenant"))
	const unseen = "note: could not read secrets in namespace tenant-a \\(forbidden\\)"
	for sentence, test := range map[string]struct {
		args  []string
		shown []string
	}{
		"with the configuration": {
			[]string{"explain", "deploy/web", "-n", namespace, "--config", file},
			[]string{"whether it is to be restarted is not known", `Secret/tenant-a/shared +Env used +app +rule tenant +Restart +Unknown`, unseen},
		},
		"without the configuration": {
			[]string{"explain", "deploy/web", "-n", namespace},
			[]string{`Secret/tenant-a/shared +Env used +app +- +Unknown +Unknown`, "note: could not read the configuration, ConfigMap headwater-system/headwater \\(forbidden\\)", unseen},
		},
		"what an annotation asks for, without the configuration": {
			[]string{"explain", "deploy/asks", "-n", namespace},
			[]string{`Secret/tenant-a/own +EnvFrom +app +annotation +Restart +Unknown`, unseen},
		},
		"consumers": {
			[]string{"consumers", "secret/own", "-n", namespace, "--config", file},
			[]string{`Deployment/tenant-a/asks +EnvFrom`, "whether this Secret exists is not shown", "only namespace tenant-a was searched"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			out, problem, exit := e.Command(tenant, test.args...)
			require.Zero(t, exit, problem)
			for _, part := range test.shown {
				require.Regexp(t, part, out)
			}
			require.NotContains(t, out, "Missing")
			require.NotContains(t, out, "s3cret")
		})
	}
	var explained struct {
		Step   reloadspec.Step   `json:"step"`
		Reason reloadspec.Reason `json:"reason"`
		Notes  []string          `json:"notes"`
	}
	e.Answers(tenant, &explained, "explain", "deploy/web", "-n", namespace, "--config", file)
	require.Equal(t, explain.StepUnknown, explained.Step)
	require.Equal(t, explain.ReasonDataUnread, explained.Reason)

	for sentence, test := range map[string]struct{ args, shown []string }{
		"another namespace":       {[]string{"explain", "deploy/web", "-n", "tenant-src"}, []string{"bind ClusterRole view in namespace tenant-src", "pods in namespace tenant-src: list, watch"}},
		"all namespaces":          {[]string{"consumers", "secret/own", "-n", namespace, "-A", "--config", file}, []string{"bind ClusterRole headwater-inspect"}},
		"a workload that is gone": {[]string{"explain", "deploy/gone", "-n", namespace}, []string{"Deployment/tenant-a/gone does not exist"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, problem, exit := e.Command(tenant, test.args...)
			require.Equal(t, 1, exit)
			for _, part := range test.shown {
				require.Contains(t, problem, part)
			}
		})
	}
}

// Without the configuration, the digest key and Secrets, an owner still sees which rule it
// was, what changed, and whether that is what their pods have.
func TestATenantSeesWhyTheirDeploymentWasRestarted(t *testing.T) {
	e := newEnv(t)
	namespace := "because-a"
	e.Namespaces("because-src", namespace)
	e.Create("because-src", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"k": "1"}})
	rule := func(action string) string {
		return "- name: because\n  source: {kind: ConfigMap, namespace: because-src, name: settings}\n" +
			"  sync: {namespaces: {include: [because-a]}}\n  reload: {action: " + action + "}\n"
	}
	byConfigMap := lab.ByNothing()
	byConfigMap.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	e.Deployment(namespace, "web", byConfigMap, nil)
	e.Deployment(namespace, "off", byConfigMap, map[string]string{mark.Reload: "Off"})
	h := e.Start(rule("Auto"))
	before := e.Adopted(h, namespace, "web")
	tenant := e.tenant(namespace)
	explained := func(workload string, shown ...string) {
		t.Helper()
		e.Eventually(func(context.Context) error {
			out, problem, exit := e.Command(tenant, "explain", "deploy/"+workload, "-n", namespace)
			for _, part := range shown {
				if exit != 0 || !regexp.MustCompile(part).MatchString(out) {
					return fmt.Errorf("no %q in: %s%s", part, out, problem)
				}
			}
			return nil
		})
	}
	explained("web", "whether it is to be restarted is not known", `ConfigMap/because-a/settings +EnvFrom +app +rule because +Restart +Unknown`)
	explained("off", "nothing to do now", `ConfigMap/because-a/settings +EnvFrom +app +annotation, over rule because +Nothing +Untracked +switched off`)

	start := e.Cluster.Mark()
	settings, err := e.Admin.CoreV1().ConfigMaps("because-src").Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	settings.Data["k"] = "2"
	_, err = e.Admin.CoreV1().ConfigMaps("because-src").Update(t.Context(), settings, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
	require.NoError(t, err)
	e.Restarted(namespace, before, "Deployment/web")
	e.Settled(h)
	written := func(resource string) []cluster.Request {
		return slices.DeleteFunc(e.Writes(start), func(r cluster.Request) bool { return r.Namespace != namespace || r.Resource != resource })
	}
	require.Len(t, written("deployments"), 1, "the restart says why in the same patch")
	explained("web", `last restarted .* ago, because ConfigMap/settings changed \(rule because, edited by kubectl-edit\)`, "nothing to do now",
		`ConfigMap/because-a/settings +EnvFrom +app +rule because +Restart +Current`)

	// A clone says its rule's action with its next write, and never for its own sake.
	start = e.Cluster.Mark()
	e.ConfigFile(rule("Restart"))
	e.HasMetric(h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	e.Settled(h)
	require.Empty(t, written("configmaps"))

	h.Stop()
	clone, err := e.Admin.CoreV1().ConfigMaps(namespace).Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "Auto", clone.Annotations[mark.ReloadAction])
	clone.Data["k"] = "3"
	_, err = e.Admin.CoreV1().ConfigMaps(namespace).Update(t.Context(), clone, metav1.UpdateOptions{})
	require.NoError(t, err)
	explained("web", `rule because +Restart +Unknown`)
}
