package service

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

const prober = "system:serviceaccount:" + lab.Namespace + ":headwater-prober"

const ruleStatus = "deploy/rbac.yaml alone does not install the kind RuleStatus"

// unusedByAnyJob are the grants that neither the main job nor the side jobs have
// an occasion for, and what they are for.
var unusedByAnyJob = map[string]string{
	"patch events.events.k8s.io":                "an Event that comes again is counted",
	"list rollouts.argoproj.io":                 "Argo Rollouts is not installed",
	"watch rollouts.argoproj.io":                "Argo Rollouts is not installed",
	"patch rollouts.argoproj.io":                "Argo Rollouts is not installed",
	"list deploymentconfigs.apps.openshift.io":  "this is not OpenShift",
	"watch deploymentconfigs.apps.openshift.io": "this is not OpenShift",
	"patch deploymentconfigs.apps.openshift.io": "this is not OpenShift",
	"get jobs.batch":                            "Jobs are read only for annotations of Reloader, which test/e2e/optin honours",
	"patch secrets":                             "reports on the consumers of a delivery, which test/e2e/reload has",
	"list rulestatuses.headwater.dev":           ruleStatus,
	"watch rulestatuses.headwater.dev":          ruleStatus,
	"create rulestatuses.headwater.dev":         ruleStatus,
	"update rulestatuses.headwater.dev":         ruleStatus,
	"delete rulestatuses.headwater.dev":         ruleStatus,
	"patch configmaps":                          "reports on the consumers of a delivery, which test/e2e/reload has",
}

// requireLeastPrivilege holds what Headwater's service account did on c against
// what it is granted there.
func requireLeastPrivilege(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	requests, err := c.Requests(t.Context(), func(r cluster.Request) bool {
		// Everybody may ask about themselves, and read the versions of the API.
		return r.User == lab.ServiceAccount && r.Resource != "" && !strings.HasPrefix(r.Resource, "self")
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
	proofs, err := c.Requests(t.Context(), func(r cluster.Request) bool { return r.User == prober })
	require.NoError(t, err)
	used["impersonate serviceaccounts"] = len(proofs) > 0 // there is no other way to be the prober
	used["impersonate groups"] = len(proofs) > 0          // or to be allowed what it tries
	var unused []string
	for _, grant := range grants {
		watch, isList := strings.CutPrefix(grant, "list ")
		// A watch begins with what there is, where the API server can; else a list does.
		if fallback := isList && used["watch "+watch]; !used[grant] && !fallback {
			unused = append(unused, grant)
		}
	}
	require.Subset(t, slices.Collect(maps.Keys(unusedByAnyJob)), unused, "granted and not used")
	for grant := range unusedByAnyJob {
		require.Contains(t, grants, grant, "not granted any more")
	}
}

func grantsOf(t *testing.T, c *cluster.Cluster) []string {
	t.Helper()
	admin, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	clusterRole := lab.Read(t, admin.RbacV1().ClusterRoles().Get, "headwater")
	role := lab.Read(t, admin.RbacV1().Roles(lab.Namespace).Get, "headwater")
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
