package service

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
)

// unusedByTheMainJob are the grants that the main job has no occasion for, and
// what they are for.
var unusedByTheMainJob = map[string]string{
	"delete secrets":             "a clone that no rule wants any more",
	"create configmaps":          "the main job clones a Secret",
	"update configmaps":          "the main job clones a Secret",
	"delete configmaps":          "the main job clones a Secret",
	"get configmaps":             "the approvals of an earlier leader, and what stands in the way of a clone",
	"patch events.events.k8s.io": "an Event that comes again is counted",
	"delete validatingwebhookconfigurations.admissionregistration.k8s.io":   "no rule protects any more",
	"update validatingwebhookconfigurations.admissionregistration.k8s.io":   "the rules changed, or somebody changed it",
	"delete validatingadmissionpolicies.admissionregistration.k8s.io":       "no rule protects any more",
	"update validatingadmissionpolicies.admissionregistration.k8s.io":       "the rules changed, or somebody changed it",
	"delete validatingadmissionpolicybindings.admissionregistration.k8s.io": "no rule protects any more",
	"update validatingadmissionpolicybindings.admissionregistration.k8s.io": "somebody changed it",
	"impersonate serviceaccounts":                                           "the audit log has these requests as the prober's",
	"list rollouts.argoproj.io":                                             "Argo Rollouts is not installed",
	"watch rollouts.argoproj.io":                                            "Argo Rollouts is not installed",
	"patch rollouts.argoproj.io":                                            "Argo Rollouts is not installed",
	"list deploymentconfigs.apps.openshift.io":                              "this is not OpenShift",
	"watch deploymentconfigs.apps.openshift.io":                             "this is not OpenShift",
	"patch deploymentconfigs.apps.openshift.io":                             "this is not OpenShift",
	"patch statefulsets.apps":                                               "the main job has Deployments",
	"patch daemonsets.apps":                                                 "the main job has Deployments",
	"patch cronjobs.batch":                                                  "the main job has Deployments",
}

// requireLeastPrivilege holds what Headwater's service account did on c against
// what it is granted there.
func requireLeastPrivilege(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	requests, err := c.Requests(t.Context(), func(r cluster.Request) bool {
		// Everybody may ask about themselves, and read the versions of the API.
		return r.User == harness.ServiceAccount && r.Resource != "" && !strings.HasPrefix(r.Resource, "self")
	})
	require.NoError(t, err)
	require.NotEmpty(t, requests)
	used := map[string]bool{}
	for _, request := range requests {
		require.NotEqual(t, http.StatusForbidden, request.Code, "refused: %+v", request)
		used[verbOn(request.Verb, request.Group, request.Resource)] = true
	}
	grants := grantsOf(t, c)
	for verb := range used {
		require.Contains(t, grants, verb, "done without a grant of its own")
	}
	for _, grant := range grants {
		watch, isList := strings.CutPrefix(grant, "list ")
		// A watch begins with what there is, where the API server can; else a list does.
		fallback := isList && used["watch "+watch]
		require.True(t, used[grant] || fallback || unusedByTheMainJob[grant] != "", "%s is granted and not used", grant)
	}
	for grant := range unusedByTheMainJob {
		require.Contains(t, grants, grant, "not granted any more")
	}
}

func grantsOf(t *testing.T, c *cluster.Cluster) []string {
	t.Helper()
	admin, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	clusterRole, err := admin.RbacV1().ClusterRoles().Get(t.Context(), "headwater", metav1.GetOptions{})
	require.NoError(t, err)
	role, err := admin.RbacV1().Roles(harness.Namespace).Get(t.Context(), "headwater", metav1.GetOptions{})
	require.NoError(t, err)
	var grants []string
	for _, rule := range slices.Concat(clusterRole.Rules, role.Rules) {
		grants = append(grants, verbsOf(rule)...)
	}
	slices.Sort(grants)
	return slices.Compact(grants)
}

func verbsOf(rule rbacv1.PolicyRule) []string {
	var all []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all = append(all, verbOn(verb, group, resource))
			}
		}
	}
	return all
}

func verbOn(verb, group, resource string) string {
	if group == "" {
		return verb + " " + resource
	}
	return verb + " " + resource + "." + group
}
