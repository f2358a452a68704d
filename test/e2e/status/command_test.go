package status

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/inspect/reported"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/e2e"
)

// onCall returns a user who may read RuleStatuses and nothing else.
func (e *env) onCall(name string) string {
	e.Helper()
	e.Grant("", "headwater-view", name)
	return name
}

func TestTheCommandStatusNeedsOnlyRuleStatuses(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"oncall-src", "oncall-a", "oncall-b"} {
		e.Namespace(name)
	}
	e.Secret("oncall-src", "shared", map[string]string{"k": "s3cret"})
	e.Secret("oncall-b", "shared", map[string]string{"k": "of somebody else"})
	user, mark := e.onCall("oncall-user"), e.Cluster.Mark()
	out, problem, exit := e.Command(user, "status", "oncall", "--wait", "--timeout", "2s")
	require.Equal(t, 2, exit, out)
	require.Contains(t, problem, `waiting for: rule "oncall" has no RuleStatus`)
	_, problem, exit = e.Command(user, "status", "oncall")
	require.Equal(t, 1, exit)
	require.Contains(t, problem, `rule "oncall" has no RuleStatus`)

	e.StartAlone(e2e.OneRule("oncall"))
	e.becomes("oncall", func(s rulestatus.Status) bool { return s.Clones.NeedAttention == 1 && s.Clones.Current == 1 })
	out, problem, exit = e.Command(user, "status")
	require.Equal(t, 2, exit, problem)
	require.Regexp(t, `(?m)^oncall +False +\S+ +1 +2 +1 +1 +- +-`, out)
	require.Contains(t, out, "oncall: 1 clone conflict (Conflict): in oncall-b\n")
	require.NotContains(t, out, "s3cret")
	var report reported.Report
	require.Equal(t, 2, e.Status(user, &report, "oncall"))
	require.Equal(t, 1, report.Rules[0].Clones.NeedAttention)
	require.Len(t, report.Attention, 1)

	ended := make(chan error, 1)
	go func() {
		out, problem, exit := e.Command(user, "status", "oncall", "--wait", "--timeout", "1m")
		if exit != 0 {
			ended <- errors.New(out + problem)
		}
		close(ended)
	}()
	require.NoError(t, e.Admin.CoreV1().Secrets("oncall-b").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	require.NoError(t, <-ended)
	out, problem, exit = e.Command(user, "status", "--wait", "--timeout", "10s")
	require.Zero(t, exit, out+problem)

	requests, err := e.Cluster.Since(t.Context(), mark, func(r cluster.Request) bool {
		return r.User == user && r.Code < 300 && r.Resource != rulestatus.Resource && r.Resource != "selfsubjectreviews"
	})
	require.NoError(t, err)
	require.Empty(t, requests)
}

func TestTheCommandStatusShowsADelivery(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"staged-src", "staged-a", "staged-b"} {
		e.Namespace(name)
	}
	e.Secret("staged-src", "shared", map[string]string{"k": "1"})
	const rule = `
- name: staged
  source: {kind: Secret, namespace: staged-src, name: shared}
  sync: {namespaces: {include: ["staged-*"]}, history: 3, delivery: {stages: [{name: canary, namespaces: {include: [staged-a]}, approval: true}]}}
`
	e.StartAlone(rule)
	e.becomes("staged", func(s rulestatus.Status) bool {
		return s.Clones.Current == 2 && s.Delivery != nil && s.Delivery.State == rulestatus.DeliveryDelivered
	})
	e.SetKey("staged-src", "shared", "k", "2")
	user := e.onCall("staged-user")
	e.Eventually(func(context.Context) error {
		out, _, _ := e.Command(user, "status", "staged")
		for _, part := range []string{"AwaitingApproval", "staged: delivery: AwaitingApproval, revision 2 of Secret/staged-src/shared, stage canary (1 of 2)"} {
			if !strings.Contains(out, part) {
				return errors.New(out)
			}
		}
		return nil
	})
	_, _, exit := e.Command(user, "status", "staged", "--wait", "--timeout", time.Second.String())
	require.Equal(t, 2, exit)

	var reports reported.Report
	require.Equal(t, 2, e.Status(user, &reports, "staged"))
	var survey inspect.Status
	inspector, file := e.Viewer("staged-inspector"), e.ConfigFile(rule)
	require.Equal(t, 2, e.Status(inspector, &survey, "--config", file))
	require.Equal(t, []rulestatus.Delivery{*reports.Rules[0].Delivery}, survey.Rules[0].Deliveries)
	out, problem, _ := e.Command(inspector, "status", "--config", file)
	require.Contains(t, out+problem, "\nstaged: delivery: AwaitingApproval, revision 2 of Secret/staged-src/shared, stage canary (1 of 2)")
}
