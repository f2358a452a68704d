package status

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/lab"
)

// unseeing takes from Headwater the permission to list and watch these resources, until
// again is called.
func (e *env) unseeing(resources ...string) (again func()) {
	e.Helper()
	change := func(rules func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) {
		roles := e.Admin.RbacV1().ClusterRoles()
		role := lab.Read(e.T, roles.Get, "headwater")
		role.Rules = rules(role.Rules)
		_, err := roles.Update(e.Context(), role, metav1.UpdateOptions{})
		require.NoError(e, err)
	}
	var before []rbacv1.PolicyRule
	change(func(all []rbacv1.PolicyRule) (left []rbacv1.PolicyRule) {
		before = all
		isLost := func(resource string) bool { return slices.Contains(resources, resource) }
		reads := func(verb string) bool { return verb == "list" || verb == "watch" }
		for _, rule := range all {
			lost := rule.DeepCopy()
			lost.Resources = slices.DeleteFunc(lost.Resources, func(resource string) bool { return !isLost(resource) })
			lost.Verbs = slices.DeleteFunc(lost.Verbs, reads)
			if len(lost.Resources) > 0 && len(lost.Verbs) > 0 {
				left = append(left, *lost)
			}
			rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), isLost)
			if len(rule.Resources) > 0 || len(rule.NonResourceURLs) > 0 {
				left = append(left, rule)
			}
		}
		return left
	})
	e.Eventually(func(ctx context.Context) error { // its authorizer hears of it a moment later
		_, err := e.Client(lab.ServiceAccount).CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
		return lab.ErrorIf(!apierrors.IsForbidden(err), "pods may be listed: %v", err)
	})
	return func() { change(func([]rbacv1.PolicyRule) []rbacv1.PolicyRule { return before }) }
}

func TestWhatIsNotWatchedIsNotFine(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("unseen-src", "unseen-a")
	e.Secret("unseen-src", "shared", map[string]string{"k": "v"})
	viewer := e.Viewer("unseen-viewer")
	o := e.Options(lab.Rule("unseen", `sync: {namespaces: {include: ["unseen-*"]}}`, "reload: {}"))
	proxy := e.Proxy(o)
	h := e.Launch(o)
	require.NoError(t, h.Ready(t.Context()))
	e.becomes("unseen", ready("Ready"))
	var shown struct {
		Leader struct{ Doubt string } `json:"leader"`
	}
	again := e.unseeing("pods", rulestatus.Resource)
	proxy.Cut() // open watches outlive a permission
	require.NoError(t, proxy.Restore())
	status := e.becomes("unseen", ready(rulestatus.CannotRead)).Status
	require.Equal(t, metav1.ConditionUnknown, status.Condition(rulestatus.Reloaded).Status)
	require.Contains(t, status.Condition(rulestatus.Reloaded).Message, "cannot read pods since ")
	e.HasMetric(h, 1, "headwater_unwatched", nil)
	e.HasMetric(h, 1, "headwater_rulestatus_doubtful", nil)
	e.Eventually(func(context.Context) error {
		exit := e.Status(viewer, &shown)
		return lab.ErrorIf(exit != 2 || shown.Leader.Doubt == "", "exit %d, %+v", exit, shown)
	})
	require.Contains(t, shown.Leader.Doubt, "RuleStatuses cannot be ")

	again()
	e.becomes("unseen", ready("Ready"))
	e.HasMetric(h, 0, "headwater_unwatched", nil)
	e.Eventually(func(context.Context) error {
		shown.Leader.Doubt = ""
		exit := e.Status(viewer, &shown)
		return lab.ErrorIf(exit != 0 || shown.Leader.Doubt != "", "exit %d, %+v", exit, shown)
	})
}
