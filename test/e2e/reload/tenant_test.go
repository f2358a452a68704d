package reload

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/explain"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// The permissions of a tenant are those of ClusterRole view in one namespace, which does
// not grant to read Secrets.
func TestATenantExplainsTheirOwnDeployment(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("tenant")
	e.Secret(namespace, "own", map[string]string{"k": "s3cret"})
	e.Deployment(namespace, "web", harness.ByEnv("shared", "used"), nil)
	e.Deployment(namespace, "asks", harness.ByEnvFrom("own"), map[string]string{mark.Reload: "Auto"})
	h := e.Start(e2e.ReloadRule("tenant"))
	e.Cloned("tenant", "used", "1")
	e.Adopted(h, namespace, "web", "asks")
	read := []string{"get", "list", "watch"}
	e.ClusterRole("tenant-view",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "pods", "serviceaccounts", "namespaces"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{appsv1.GroupName}, Resources: []string{"deployments", "statefulsets", "daemonsets"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: read})
	tenant := "system:serviceaccount:" + namespace + ":tenant"
	e.Grant(namespace, "tenant-view", tenant)
	file := e.ConfigFile(e2e.ReloadRule("tenant"))
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
