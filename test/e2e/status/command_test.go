package status

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/inspect/reported"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// onCall returns a user who may read RuleStatuses and Headwater's Lease, and nothing else.
func (e *env) onCall(name string) string {
	e.Helper()
	e.Grant("", "headwater-view", name)
	return name
}

func TestTheCommandStatusNeedsOnlyRuleStatuses(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("oncall-src", "oncall-a", "oncall-b")
	e.Secret("oncall-src", "shared", map[string]string{"k": "s3cret"})
	e.Secret("oncall-b", "shared", map[string]string{"k": "of somebody else"})
	user, mark := e.onCall("oncall-user"), e.Cluster.Mark()
	out, problem, exit := e.Command(user, "status", "oncall", "--wait", "--timeout", "2s")
	require.Equal(t, 2, exit, out)
	require.Contains(t, problem, `waiting for: rule "oncall" has no RuleStatus`)
	_, problem, exit = e.Command(user, "status", "oncall")
	require.Equal(t, 1, exit)
	require.Contains(t, problem, `rule "oncall" has no RuleStatus`)

	e.Start(lab.OneRule("oncall"))
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
		out, problem, exit := e.Command(user, "status", "oncall", "--wait", "--timeout", lab.Timeout.String())
		if exit != 0 {
			ended <- errors.New(out + problem)
		}
		close(ended)
	}()
	require.NoError(t, e.Admin.CoreV1().Secrets("oncall-b").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	require.NoError(t, <-ended)
	out, problem, exit = e.Command(user, "status", "--wait", "--timeout", lab.Timeout.String())
	require.Zero(t, exit, out+problem)

	requests, err := e.Cluster.Since(t.Context(), mark, func(r cluster.Request) bool {
		return r.User == user && r.Code < 300 && r.Resource != rulestatus.Resource && r.Resource != "selfsubjectreviews" && r.Resource != "leases"
	})
	require.NoError(t, err)
	require.Empty(t, requests)
}

func TestTheCommandStatusShowsADelivery(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("staged-src", "staged-a", "staged-b")
	e.Secret("staged-src", "shared", map[string]string{"k": "1"})
	const rule = `
- name: staged
  source: {kind: Secret, namespace: staged-src, name: shared}
  sync: {namespaces: {include: ["staged-*"]}, history: 3, delivery: {stages: [{name: canary, namespaces: {include: [staged-a]}, approval: true, soak: 0s}]}}
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
}

// What nobody confirms is not fine: before Headwater ever ran, and after its leader is gone.
func TestTheCommandStatusSaysThatNobodyConfirmsIt(t *testing.T) {
	t.Parallel()
	c := cluster.ForTest(t, cluster.Options{})
	base := lab.On(t, c)
	e := &env{base, base.RuleStatuses()}
	e.StageOf("beat", map[string]string{"k": "v"})
	user := e.onCall("beat-user")
	out, _, exit := e.Command(user, "status")
	require.Equal(t, 2, exit, out)
	require.Contains(t, out, "Headwater never ran here")

	o := e.Options(strings.Replace(lab.OneRule("beat"), "}}", "}, history: 2}", 1))
	o.Args = []string{"--lease-duration", "10s"}
	h := e.Launch(o)
	require.NoError(t, h.Ready(t.Context()))
	e.becomes("beat", ready("Ready"))
	out, problem, exit := e.Command(user, "status")
	require.Zero(t, exit, problem)
	require.Contains(t, out, "nobody knows whether it removes rules", "nothing was recorded before the first start")
	history := func() (out string, exit int) {
		out, problem, exit := e.Command(user, "history", "beat")
		return out + problem, exit
	}
	e.Eventually(func(context.Context) error { // a revision is recorded beside the cloning
		out, exit := history()
		return lab.ErrorIf(exit != 0, "exit %d: %s", exit, out)
	})
	require.NoError(t, e.Admin.CoreV1().Secrets("beat-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.becomes("beat", func(s rulestatus.Status) bool { return s.Clones.ByState["retained"] == 1 })
	out, _, _ = e.Command(user, "status")
	require.Contains(t, out, "0 (and 1 retained)")

	h.Kill()
	e.Eventually(func(context.Context) error {
		out, _, exit := e.Command(user, "status")
		return lab.ErrorIf(exit != 2 || !strings.Contains(out, "not confirmed since"), "exit %d: %s", exit, out)
	})
	_, _, exit = e.Command(user, "status", "--wait", "--timeout", "1s")
	require.Equal(t, 2, exit)
	out, exit = history()
	require.Equal(t, 2, exit, out)
	require.Contains(t, out, "not confirmed since")

	// A leader whose clock was far ahead, and which was killed.
	leases := e.Admin.CoordinationV1().Leases(lab.Namespace)
	lease, err := leases.Get(t.Context(), leader.LeaseName, metav1.GetOptions{})
	require.NoError(t, err)
	lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().AddDate(10, 0, 0)))
	lease.Spec.LeaseDurationSeconds = new(int32(1))
	_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
	require.NoError(t, err)
	e.Eventually(func(context.Context) error {
		out, _, exit := e.Command(user, "status")
		return lab.ErrorIf(exit != 2 || !strings.Contains(out, "not confirmed since"), "exit %d: %s", exit, out)
	})
}

func TestALeaderThatChangesAgainAndAgainIsReported(t *testing.T) {
	e := newEnv(t)
	e.Stage("again")
	for times := range 5 { // the first creates the Lease
		h := e.Start(lab.ReloadRule("again"))
		e.HasMetric(h, 1, "headwater_leader", nil)
		if times < 4 {
			h.Stop()
		}
	}
	require.Contains(t, e.HasEvent(lab.Namespace, leader.LeaseName, "LeaderFlapping"), "kubectl get pods")
}
