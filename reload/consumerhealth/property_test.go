package consumerhealth_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/reload/consumerhealth"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
	"github.com/headwater-k8s/headwater/test/seed"
)

// anyConsumer is a consumer in any state.
func anyConsumer(random *rand.Rand) consumerhealth.Consumer {
	maybe := func(one change) change {
		if random.IntN(4) == 0 {
			return one
		}
		return func(*consumerhealth.Consumer) {}
	}
	c := web(
		maybe(mounts), maybe(created(time.Second)), maybe(edited(0)), maybe(rollout(starting)),
		maybe(rollout(func(r *workload.Rollout) { r.Paused = true })), maybe(rollout(func(r *workload.Rollout) { r.Replicas = 0 })),
		maybe(func(c *consumerhealth.Consumer) { c.Excluded = true }), maybe(func(c *consumerhealth.Consumer) { c.Settled = true }),
		maybe(func(c *consumerhealth.Consumer) { c.Waits, c.Paced = "window", true }), maybe(func(c *consumerhealth.Consumer) { c.LacksKey = true }), maybe(func(c *consumerhealth.Consumer) { c.Workload.Kind = kinds.KindCronJob }),
	)
	for _, name := range []string{"a", "b", "c"}[:random.IntN(4)] {
		with(name, func(p *consumerhealth.Pod) {
			p.Started, p.Shows = random.IntN(2) == 0, random.IntN(2) == 0
			p.Readiness, p.Crashes = workload.Readiness(random.IntN(3)), uint16(random.IntN(4))
			if random.IntN(3) == 0 {
				p.Trouble = workload.TroubleOf([]string{"CrashLoopBackOff", "CreateContainerConfigError"}[random.IntN(2)])
			}
			if random.IntN(4) == 0 {
				p.Phase, p.StartedAt = corev1.PodPending, uint32(random.IntN(2))
			}
		})(&c)
	}
	return c
}

// onOtherNodes is c with the times that nodes give.
func onOtherNodes(c consumerhealth.Consumer, random *rand.Rand) consumerhealth.Consumer {
	pods := make([]consumerhealth.Pod, 0, len(c.Pods))
	for _, pod := range c.Pods {
		other := *pod.Pod
		other.CrashedAt = random.Uint32()
		if other.StartedAt != 0 {
			other.StartedAt = 1 + random.Uint32N(1<<31)
		}
		pod.Pod = &other
		pods = append(pods, pod)
	}
	c.Pods = pods
	return c
}

// Invariants D10 and D13, of one consumer.
func TestNoConsumerIsTakenForWhatItDoesNotShow(t *testing.T) {
	random := rand.New(rand.NewPCG(seed.Or(t, 34), 0))
	for range 50_000 {
		in := consumerhealth.Input{
			Recorded: written, Written: written, Now: now, AnyHealth: random.IntN(8) == 0,
			Before: []revisions.Condition{"", "", revisions.Failing, revisions.Rolling, revisions.Partly}[random.IntN(5)],
		}
		var past, elsewhere consumerhealth.Past
		ran, sum := false, revisions.StageEvidence{}
		for range 1 + random.IntN(4) {
			c := anyConsumer(random)
			var is, same consumerhealth.Result
			is, past = consumerhealth.Judge(c, past, in)
			same, elsewhere = consumerhealth.Judge(onOtherNodes(c, random), elsewhere, in)
			require.Equal(t, is, same, "a node's clock decides")
			ran = ran || shownBy(c, in.AnyHealth)
			checkResult(t, c, in, is, ran)
			sum = consumerhealth.Add(sum, []consumerhealth.Result{is}, false)
			in.Now = in.Now.Add(time.Duration(random.IntN(60)) * time.Second)
		}
		require.LessOrEqual(t, sum.Proven+sum.Unhealthy, sum.Namespaces)
		require.LessOrEqual(t, sum.Failed, sum.Unhealthy)
		require.LessOrEqual(t, sum.Unclear+sum.Paced, sum.Waiting)
		require.LessOrEqual(t, sum.Proven, sum.Ran+sum.Refreshed)
	}
}

func checkResult(t *testing.T, c consumerhealth.Consumer, in consumerhealth.Input, is consumerhealth.Result, ran bool) {
	t.Helper()
	failing := false
	for _, pod := range c.Pods {
		failing = failing || pod.Started || pod.Shows
	}
	switch is.State {
	case consumerhealth.Ran, consumerhealth.Refreshed:
		require.True(t, ran, "evidence that no pod gave: %+v", c)
		require.False(t, is.State == consumerhealth.Refreshed && c.Restarts && !ran)
	case consumerhealth.Failing:
		require.True(t, failing, "no pod has the revision: %+v", c)
		require.NotEqual(t, revisions.Failing, in.Before)
		require.NotEqual(t, revisions.Rolling, in.Before)
	case consumerhealth.Waiting:
		require.NotEqual(t, revisions.Failing, in.Before)
		require.NotEmpty(t, is.Reason)
		require.False(t, c.Excluded && !is.Unclear, "nothing will ever move it: %+v", c)
	case consumerhealth.Idle, consumerhealth.Excused:
	default:
		require.Fail(t, "no state", is.State)
	}
}

// shownBy reports whether a pod of c shows the revision now.
func shownBy(c consumerhealth.Consumer, anyHealth bool) bool {
	for _, pod := range c.Pods {
		if (pod.Started || pod.Shows && !c.Restarts) && (anyHealth || pod.Readiness == workload.Ready) {
			return true
		}
	}
	return false
}
