package health

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// The clone was written an hour after reloadtest.Birth, and the restart for it came a minute
// later. Now is a minute after that.
const (
	written   = time.Hour
	restarted = written + time.Minute
	judged    = restarted + time.Minute
)

// consumer is a Deployment whose rollout is complete.
func consumer(name string, changes ...func(*Consumer)) Consumer {
	c := Consumer{
		Name:     "Deployment/" + name,
		Workload: &workload.Workload{Kind: kinds.KindDeployment, Rollout: &workload.Rollout{Generation: 2, Observed: 2, Replicas: 2, Updated: 2, Available: 2}},
	}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func restartedFor(c *Consumer) { c.RestartedAt = reloadtest.Birth.Add(restarted) }

func waitsFor(what string) func(*Consumer) { return func(c *Consumer) { c.Waits = what } }

func rollout(change func(*workload.Rollout)) func(*Consumer) {
	return func(c *Consumer) { change(c.Workload.Rollout) }
}

func progressing(r *workload.Rollout) { r.Updated, r.Old, r.Available = 1, 1, 1 }

func pods(all ...*workload.Pod) func(*Consumer) { return func(c *Consumer) { c.Pods = all } }

func refreshed(all ...*workload.Pod) func(*Consumer) {
	return func(c *Consumer) { c.Pods, c.Refreshed = all, all }
}

func notReady(since time.Duration) func(*workload.Pod) {
	return func(p *workload.Pod) { p.NotReadySince = uint32(reloadtest.Birth.Add(since).Unix()) }
}

func TestTheHealthOfTheConsumersOfARevision(t *testing.T) {
	crashing := waitingFor("CrashLoopBackOff")
	failedBefore := func(c *Consumer) { c.FailedBefore = true }
	for sentence, test := range map[string]struct {
		consumers []Consumer
		want      string
		again     time.Duration // after reloadtest.Birth; 0 for never
	}{
		"a consumer that needs nothing is healthy":               {consumers: []Consumer{consumer("web")}, want: "7 Healthy"},
		"one whose rollout is complete is healthy":               {consumers: []Consumer{consumer("web", restartedFor)}, want: "7 Healthy"},
		"one that waits is pending, for its reason":              {consumers: []Consumer{consumer("web", waitsFor("waits for its window"))}, want: "7 Pending: Deployment/web: waits for its window"},
		"one whose rollout goes on is pending":                   {consumers: []Consumer{consumer("web", restartedFor, rollout(progressing))}, want: "7 Pending: Deployment/web: rollout in progress"},
		"one whose rollout is paused is pending, which is named": {consumers: []Consumer{consumer("web", restartedFor, rollout(progressing), rollout(func(r *workload.Rollout) { r.Paused = true }))}, want: "7 Pending: Deployment/web: rollout in progress (Paused)"},
		"a rollout that Headwater did not start delays nothing":  {consumers: []Consumer{consumer("web", rollout(progressing))}, want: "7 Healthy"},
		"nor does its deadline count":                            {consumers: []Consumer{consumer("web", rollout(progressing), rollout(func(r *workload.Rollout) { r.FailedAt = reloadtest.Birth.Add(judged).Unix() }))}, want: "7 Healthy"},
		"a rollout that exceeded its deadline is unhealthy": {
			consumers: []Consumer{consumer("web", restartedFor, rollout(progressing), rollout(func(r *workload.Rollout) { r.FailedAt = reloadtest.Birth.Add(judged).Unix() }))},
			want:      "7 Unhealthy: Deployment/web: ProgressDeadlineExceeded",
		},
		"a new pod that crashes is unhealthy": {
			consumers: []Consumer{consumer("web", restartedFor, rollout(progressing), pods(boundPod(0), boundPod(restarted, crashing)))},
			want:      "7 Unhealthy: Deployment/web: CrashLoopBackOff (pod pod-1h1m0s)",
		},
		"so is a pod that came by itself and read the clone": {
			consumers: []Consumer{consumer("web", pods(boundPod(0), boundPod(restarted, crashing)))},
			want:      "7 Unhealthy: Deployment/web: CrashLoopBackOff (pod pod-1h1m0s)",
		},
		"an old pod that fails does not hide a new one": {
			consumers: []Consumer{consumer("web", restartedFor, rollout(progressing), pods(boundPod(0, crashing), boundPod(restarted, crashing)))},
			want:      "7 Unhealthy: Deployment/web: CrashLoopBackOff (pod pod-1h1m0s)",
		},
		"what failed before does not count, and is named": {
			consumers: []Consumer{consumer("old", failedBefore, restartedFor, rollout(progressing), pods(boundPod(restarted, crashing))), consumer("web")},
			want:      "7 Healthy: Deployment/old failed before",
		},
		"nor does what was unavailable before": {
			consumers: []Consumer{consumer("old", restartedFor, rollout(progressing), rollout(func(r *workload.Rollout) { r.UnavailableAt = reloadtest.Birth.Unix() }))},
			want:      "7 Healthy: Deployment/old failed before",
		},
		"what is unavailable since counts": {
			consumers: []Consumer{consumer("web", restartedFor, rollout(progressing), rollout(func(r *workload.Rollout) { r.UnavailableAt = reloadtest.Birth.Add(written).Unix() }))},
			want:      "7 Pending: Deployment/web: rollout in progress",
		},
		"what failed before and recovered is healthy": {consumers: []Consumer{consumer("old", failedBefore, restartedFor)}, want: "7 Healthy"},
		"a refreshed pod that stays ready is healthy": {consumers: []Consumer{consumer("web", refreshed(boundPod(0)))}, want: "7 Healthy"},
		"one that lost its readiness is unhealthy": {
			consumers: []Consumer{consumer("web", refreshed(boundPod(0, notReady(written))))},
			want:      "7 Unhealthy: Deployment/web: NotReady (pod pod-0s)",
		},
		"one that was not ready before does not count": {consumers: []Consumer{consumer("web", refreshed(boundPod(0, notReady(written-time.Second))))}, want: "7 Healthy"},
		"one that restarted since is unhealthy for a while": {
			consumers: []Consumer{consumer("web", refreshed(boundPod(0, crashed(1, written))))},
			want:      "7 Unhealthy: Deployment/web: Restarted (pod pod-0s)", again: written + 6*time.Minute,
		},
		"one that restarted before does not count": {consumers: []Consumer{consumer("web", refreshed(boundPod(0, crashed(1, written-time.Second))))}, want: "7 Healthy"},
		"one that crashes since is unhealthy, for the kubelet's reason": {
			consumers: []Consumer{consumer("web", refreshed(boundPod(0, crashed(3, judged), crashing)))},
			want:      "7 Unhealthy: Deployment/web: CrashLoopBackOff (pod pod-0s)",
		},
		"a new pod that is not ready yet is no refreshed one":    {consumers: []Consumer{consumer("web", refreshed(boundPod(restarted, notReady(restarted))))}, want: "7 Healthy"},
		"a pod without a workload is judged, too":                {consumers: []Consumer{{Name: "Pod/alone", Refreshed: []*workload.Pod{boundPod(0, notReady(written))}}}, want: "7 Unhealthy: Pod/alone: NotReady (pod pod-0s)"},
		"the rollout of a CronJob is none":                       {consumers: []Consumer{consumer("job", restartedFor, rollout(progressing), func(c *Consumer) { c.Workload.Kind = kinds.KindCronJob })}, want: "7 Healthy"},
		"unhealthy is worse than pending, and names itself only": {consumers: []Consumer{consumer("a", waitsFor("waits")), consumer("web", refreshed(boundPod(0, notReady(judged))))}, want: "7 Unhealthy: Deployment/web: NotReady (pod pod-0s)"},
		"reasons are sorted, and only some are named": {
			consumers: []Consumer{
				consumer("f", waitsFor("w")), consumer("e", waitsFor("w")), consumer("d", waitsFor("w")), consumer("c", waitsFor("w")),
				consumer("b", waitsFor("w")), consumer("a", waitsFor("w")), consumer("z", waitsFor("w"), failedBefore),
			},
			want: "7 Pending: Deployment/a: w; Deployment/b: w; Deployment/c: w; Deployment/d: w; Deployment/e: w; and 1 more; Deployment/z failed before",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			report, again := JudgeConsumers(7, test.consumers, reloadtest.Birth.Add(written), reloadtest.Birth.Add(judged))
			require.Equal(t, test.want, report.String())
			want := time.Time{}
			if test.again != 0 {
				want = reloadtest.Birth.Add(test.again)
			}
			require.Equal(t, want, again)
			read, ok := mark.ParseConsumersReport(report.String())
			require.True(t, ok)
			require.Equal(t, report, read)
		})
	}
}

func TestWhatFailsWhenTheCloneIsWritten(t *testing.T) {
	crashing := waitingFor("CrashLoopBackOff")
	consumers := []Consumer{
		consumer("web", pods(boundPod(0))),
		consumer("old", pods(boundPod(0, crashing))),
		consumer("new", pods(boundPod(written, crashing))),
	}
	at := reloadtest.Birth.Add(written)
	require.Equal(t, []string{"Deployment/old"}, FailsNow(consumers, nil, at, at))
}

func TestWhatAnEarlierRevisionBrokeIsNoExcuse(t *testing.T) {
	const ended = -time.Minute // before the clone was written
	crashing := waitingFor("CrashLoopBackOff")
	older, newer := boundPod(ended-time.Second, crashing), boundPod(ended, crashing)
	unavailable := func(since time.Duration) func(*Consumer) {
		return rollout(func(r *workload.Rollout) { r.UnavailableAt = reloadtest.Birth.Add(since).Unix() })
	}
	const broken = "6 Unhealthy: Deployment/web: CrashLoopBackOff (pod web-gone)"
	at := reloadtest.Birth.Add(written)
	for sentence, test := range map[string]struct {
		last   string
		web    Consumer
		blamed bool
	}{
		"there is no report":                                {"", consumer("web", pods(older)), false},
		"the earlier revision broke it":                     {broken, consumer("web", pods(older)), true},
		"the earlier revision broke another one, too":       {"6 Unhealthy: Deployment/a: NotReady (pod x); Deployment/web: CrashLoopBackOff (pod y)", consumer("web", pods(older)), true},
		"the earlier revision did not roll out":             {"6 Unhealthy: Deployment/web: ProgressDeadlineExceeded", consumer("web", pods(older)), true},
		"the earlier revision was still on its way":         {"6 Pending: Deployment/web: rollout in progress", consumer("web", pods(older)), true},
		"it failed before the earlier one, too":             {"6 Healthy: Deployment/web failed before", consumer("web", pods(older)), false},
		"it failed before the earlier one, unlike another":  {"6 Unhealthy: Deployment/a: NotReady (pod x); Deployment/web failed before", consumer("web", pods(older)), false},
		"the earlier one broke a consumer of a longer name": {"6 Unhealthy: Deployment/web-2: NotReady (pod x)", consumer("web", pods(older)), false},
		"a pod that started after the earlier one fails":    {broken, consumer("web", pods(older, newer)), false},
		"it is unavailable since before the earlier ended":  {broken, consumer("web", pods(older), unavailable(ended-time.Second)), true},
		"it is unavailable since the earlier ended":         {broken, consumer("web", pods(older), unavailable(ended)), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			last, _ := mark.ParseConsumersReport(test.last)
			blamed := BlamedIn(last, []Consumer{test.web}, reloadtest.Birth.Add(ended+time.Millisecond), at, at)
			require.Equal(t, test.blamed, len(blamed) > 0)
			require.Equal(t, !test.blamed, len(FailsNow([]Consumer{test.web}, blamed, at, at)) > 0)
		})
	}
}

func TestAWorkloadThatABlamedRevisionMadeUnavailableHasNoExcuse(t *testing.T) {
	crashing := waitingFor("CrashLoopBackOff")
	at := reloadtest.Birth.Add(written)
	unavailable := consumer("web", restartedFor, rollout(func(r *workload.Rollout) {
		progressing(r)
		r.UnavailableAt = reloadtest.Birth.Unix()
	}), pods(boundPod(restarted, crashing)))
	report, _ := JudgeConsumers(7, []Consumer{unavailable}, at, reloadtest.Birth.Add(judged))
	require.Equal(t, mark.ConsumersHealthy, report.Health)
	unavailable.Blamed = true
	report, _ = JudgeConsumers(7, []Consumer{unavailable}, at, reloadtest.Birth.Add(judged))
	require.Equal(t, mark.ConsumersUnhealthy, report.Health)
}

func TestAReportSaysWhatFailedBefore(t *testing.T) {
	failed := func(c *Consumer) { c.FailedBefore = true }
	report, _ := JudgeConsumers(7, []Consumer{
		consumer("a", waitsFor("waits for its window")), consumer("b", waitsFor("waits"), failed), consumer("c", waitsFor("waits"), failed),
	}, reloadtest.Birth.Add(written), reloadtest.Birth.Add(judged))
	require.Equal(t, []string{"Deployment/b", "Deployment/c"}, FailedBeforeIn(report))
	require.Empty(t, FailedBeforeIn(mark.ConsumersReport{}))
}
