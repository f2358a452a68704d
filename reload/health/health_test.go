package health

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// boundPod is a pod that runs since so long after birth.
func boundPod(after time.Duration, with ...func(*workload.Pod)) *workload.Pod {
	pod := &workload.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-" + after.String()}, Bound: true, BoundAt: reloadtest.Birth.Add(after), Phase: corev1.PodRunning}
	for _, set := range with {
		set(pod)
	}
	return pod
}

func waitingFor(reason string) func(*workload.Pod) {
	return func(p *workload.Pod) { p.Trouble = workload.TroubleOf(reason) }
}

// crashed has ended so often, the last time so long after birth.
func crashed(times uint16, last time.Duration) func(*workload.Pod) {
	return func(p *workload.Pod) {
		p.Crashes, p.CrashedAt = times, uint32(reloadtest.Birth.Add(last).Unix())
	}
}

func TestJudgingARollout(t *testing.T) {
	const restarted = time.Hour // after birth
	second := func(after time.Duration) int64 { return reloadtest.Birth.Add(after).Unix() }
	deployment := func(change func(*workload.Rollout)) *workload.Workload {
		r := &workload.Rollout{Generation: 2, Observed: 2, Replicas: 2, Updated: 1, Old: 1, Available: 1}
		change(r)
		return &workload.Workload{Kind: kinds.KindDeployment, Rollout: r}
	}
	asIs := func(*workload.Rollout) {}
	complete := func(r *workload.Rollout) { r.Updated, r.Old, r.Available = 2, 0, 2 }
	set := func() *workload.Workload { w := deployment(asIs); w.Kind = kinds.KindStatefulSet; return w }
	ordered := func() *workload.Workload { w := set(); w.Rollout.Ordered, w.Rollout.Update = true, 2; return w }
	of := func(revision workload.Revision, name string, readiness workload.Readiness) func(*workload.Pod) {
		return func(p *workload.Pod) { p.Name, p.Revision, p.Readiness = name, revision, readiness }
	}
	old, recent := boundPod(0), boundPod(restarted+time.Minute)
	for sentence, test := range map[string]struct {
		w    *workload.Workload
		pods []*workload.Pod
		now  time.Duration // after the restart
		want RolloutHealth
	}{
		"a rollout whose pods come":           {deployment(asIs), []*workload.Pod{old, recent}, time.Hour, RolloutHealth{Health: Progressing}},
		"one that is complete":                {deployment(complete), []*workload.Pod{recent}, time.Hour, RolloutHealth{Health: Healthy}},
		"one that is paused":                  {deployment(func(r *workload.Rollout) { r.Paused = true }), []*workload.Pod{old}, time.Hour, RolloutHealth{Health: Progressing}},
		"one that exceeded its deadline":      {deployment(func(r *workload.Rollout) { r.FailedAt = second(restarted + time.Minute) }), []*workload.Pod{old}, time.Hour, RolloutHealth{Health: Stuck, Reason: workload.StuckDeadline}},
		"one that exceeded it before":         {deployment(func(r *workload.Rollout) { r.FailedAt = second(restarted - time.Minute) }), []*workload.Pod{old}, time.Hour, RolloutHealth{Health: Progressing}},
		"one complete after it exceeded it":   {deployment(func(r *workload.Rollout) { complete(r); r.FailedAt = second(restarted + time.Minute) }), []*workload.Pod{recent}, time.Hour, RolloutHealth{Health: Healthy}},
		"a new pod that crashes":              {deployment(asIs), []*workload.Pod{old, boundPod(restarted, waitingFor("CrashLoopBackOff"))}, time.Minute, RolloutHealth{Health: Stuck, Reason: workload.StuckCrashing, Pod: "pod-1h0m0s"}},
		"one that lacks its configuration":    {deployment(asIs), []*workload.Pod{old, boundPod(restarted, waitingFor("CreateContainerConfigError"))}, time.Minute, RolloutHealth{Health: Stuck, Reason: workload.StuckConfig, Pod: "pod-1h0m0s"}},
		"one whose image cannot be pulled":    {deployment(asIs), []*workload.Pod{old, boundPod(restarted, waitingFor("ErrImagePull"))}, time.Minute, RolloutHealth{Health: Stuck, Reason: workload.StuckImagePull, Pod: "pod-1h0m0s"}},
		"one whose containers are created":    {deployment(asIs), []*workload.Pod{old, boundPod(restarted, waitingFor("ContainerCreating"))}, time.Minute, RolloutHealth{Health: Progressing}},
		"one that crashes after it was there": {deployment(complete), []*workload.Pod{boundPod(restarted, waitingFor("CrashLoopBackOff"), crashed(3, restarted+time.Minute))}, 2 * time.Minute, RolloutHealth{Health: Stuck, Reason: workload.StuckCrashing, Pod: "pod-1h0m0s"}},
		"one that crashed once":               {deployment(complete), []*workload.Pod{boundPod(restarted, crashed(1, restarted+time.Minute))}, 2 * time.Minute, RolloutHealth{Health: Healthy}},
		"one that runs between two crashes": {
			deployment(complete),
			[]*workload.Pod{boundPod(restarted, crashed(4, restarted+time.Minute))},
			2 * time.Minute,
			RolloutHealth{Health: Stuck, Reason: workload.StuckCrashing, Pod: "pod-1h0m0s", Again: reloadtest.Birth.Add(restarted + 7*time.Minute)},
		},
		"one that crashed and runs":          {deployment(complete), []*workload.Pod{boundPod(restarted, crashed(4, restarted+time.Minute))}, 7 * time.Minute, RolloutHealth{Health: Healthy}},
		"one that ran for a day before that": {deployment(complete), []*workload.Pod{boundPod(restarted, waitingFor("CrashLoopBackOff"), crashed(3, restarted+24*time.Hour))}, 24 * time.Hour, RolloutHealth{Health: Healthy}},
		"one that came a day later":          {deployment(complete), []*workload.Pod{recent, boundPod(restarted+24*time.Hour, waitingFor("CrashLoopBackOff"))}, 25 * time.Hour, RolloutHealth{Health: Healthy}},
		"one that came late, in a rollout that was held": {
			deployment(asIs),
			[]*workload.Pod{old, boundPod(restarted+24*time.Hour, waitingFor("ErrImagePull"))},
			25 * time.Hour,
			RolloutHealth{Health: Stuck, Reason: workload.StuckImagePull, Pod: "pod-25h0m0s"},
		},
		"a new pod that fails, as an old one does": {
			deployment(asIs),
			[]*workload.Pod{boundPod(0, waitingFor("CrashLoopBackOff")), boundPod(restarted, waitingFor("CrashLoopBackOff"))},
			time.Minute,
			RolloutHealth{Health: Progressing, Reason: workload.StuckCrashing, Pod: "pod-1h0m0s", FailedBefore: true},
		},
		"one of a workload that was unavailable before": {
			deployment(func(r *workload.Rollout) { r.UnavailableAt = second(restarted - time.Minute) }),
			[]*workload.Pod{boundPod(restarted, waitingFor("CrashLoopBackOff"))},
			time.Minute,
			RolloutHealth{Health: Progressing, Reason: workload.StuckCrashing, Pod: "pod-1h0m0s", FailedBefore: true},
		},
		"one of a workload that is unavailable since": {
			deployment(func(r *workload.Rollout) { r.UnavailableAt = second(restarted) }),
			[]*workload.Pod{boundPod(restarted, waitingFor("CrashLoopBackOff"))},
			time.Minute,
			RolloutHealth{Health: Stuck, Reason: workload.StuckCrashing, Pod: "pod-1h0m0s"},
		},
		"a kind without a deadline, whose last pod came lately": {
			set(),
			[]*workload.Pod{old, boundPod(restarted + 5*time.Minute)},
			14 * time.Minute,
			RolloutHealth{Health: Progressing, Again: reloadtest.Birth.Add(restarted + 15*time.Minute)},
		},
		"a kind without a deadline, whose last pod came long ago": {
			set(),
			[]*workload.Pod{old, boundPod(restarted + 5*time.Minute)},
			15 * time.Minute,
			RolloutHealth{Health: Stuck, Reason: workload.StuckNoProgress},
		},
		"a set that waits for an older pod which is not ready": {
			ordered(),
			[]*workload.Pod{boundPod(0, of(1, "web-0", workload.NotReady)), boundPod(restarted+time.Minute, of(2, "web-1", workload.Ready))},
			10 * time.Minute,
			RolloutHealth{Health: Progressing, Pod: "web-0", Again: reloadtest.Birth.Add(restarted + 11*time.Minute)},
		},
		"one that has waited for it for long": {
			ordered(),
			[]*workload.Pod{boundPod(0, of(1, "web-0", workload.NotReady)), boundPod(restarted+time.Minute, of(2, "web-1", workload.Ready))},
			11 * time.Minute,
			RolloutHealth{Health: Stuck, Reason: workload.StuckStanding, Pod: "web-0"},
		},
		"one whose older pod fails, as it did before": {
			ordered(),
			[]*workload.Pod{boundPod(0, of(1, "web-0", workload.NotReady), waitingFor("CrashLoopBackOff")), boundPod(0, of(1, "web-1", workload.Ready))},
			time.Second,
			RolloutHealth{Health: Stuck, Reason: workload.StuckStanding, Pod: "web-0"},
		},
		"one whose new pod fails": {
			ordered(),
			[]*workload.Pod{boundPod(0, of(1, "web-0", workload.Ready)), boundPod(restarted, of(2, "web-1", workload.NotReady), waitingFor("CrashLoopBackOff"))},
			time.Second,
			RolloutHealth{Health: Stuck, Reason: workload.StuckCrashing, Pod: "web-1"},
		},
		"one whose new pod fails, so that an older one is not ready": {
			ordered(),
			[]*workload.Pod{boundPod(0, of(1, "web-0", workload.NotReady)), boundPod(restarted, of(2, "web-1", workload.NotReady), waitingFor("CrashLoopBackOff"))},
			time.Hour,
			RolloutHealth{Health: Stuck, Reason: workload.StuckCrashing, Pod: "web-1"},
		},
		"a kind that tells nothing, with old pods":    {&workload.Workload{}, []*workload.Pod{old, recent}, time.Minute, RolloutHealth{Health: Progressing, Again: reloadtest.Birth.Add(restarted + 11*time.Minute)}},
		"a kind that tells nothing, without old pods": {&workload.Workload{}, []*workload.Pod{recent}, time.Hour, RolloutHealth{Health: Healthy}},
		"old pods that are being deleted": {
			&workload.Workload{}, []*workload.Pod{boundPod(0, func(p *workload.Pod) { p.DeletionTimestamp = &metav1.Time{} }), recent}, time.Minute, RolloutHealth{Health: Healthy},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, test.want, JudgeRollout(test.w, test.pods, reloadtest.Birth.Add(restarted), reloadtest.Birth.Add(restarted+test.now)))
		})
	}
}

func TestWhichPodsRunOlderData(t *testing.T) {
	stamped := func(p *workload.Pod) { p.Annotations = reloadtest.Notes{mark.RestartedFor: "v2:"} }
	for sentence, test := range map[string]struct {
		pod       *workload.Pod
		changedAt time.Duration
		old       int
	}{
		"one older than the restart":                                        {boundPod(-time.Second), 0, 1},
		"one younger than it":                                               {boundPod(time.Second), 0, 0},
		"one of its second, with a stamp":                                   {boundPod(0, stamped), 0, 0},
		"one of its second, without a stamp":                                {boundPod(0), 0, 1},
		"one older than a restart that waited, but not older than the data": {boundPod(-time.Minute), -time.Hour, 0},
		"one older than the data, too":                                      {boundPod(-2 * time.Hour), -time.Hour, 1},
		"one that is older than data that changed since":                    {boundPod(time.Second), time.Hour, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			old, all := outdated([]*workload.Pod{test.pod, boundPod(-time.Hour, func(p *workload.Pod) { p.Phase = corev1.PodFailed })}, reloadtest.Birth, reloadtest.Birth.Add(test.changedAt))
			require.Equal(t, test.old, old)
			require.Equal(t, 1, all)
		})
	}
}

func TestWhyOldPodsRunOn(t *testing.T) {
	for sentence, test := range map[string]struct {
		w      *workload.Workload
		health RolloutHealth
		want   KeptReason
	}{
		"a Deployment that is paused":             {&workload.Workload{Kind: kinds.KindDeployment, Rollout: &workload.Rollout{Paused: true}}, RolloutHealth{}, KeptPaused},
		"a StatefulSet under OnDelete":            {&workload.Workload{Kind: kinds.KindStatefulSet, Rollout: &workload.Rollout{Paused: true}}, RolloutHealth{}, KeptOnDelete},
		"a StatefulSet up to its partition":       {&workload.Workload{Kind: kinds.KindStatefulSet, Rollout: &workload.Rollout{Replicas: 3, Partitioned: 1, Updated: 2}}, RolloutHealth{}, KeptPartition},
		"one that is not there yet":               {&workload.Workload{Kind: kinds.KindStatefulSet, Rollout: &workload.Rollout{Replicas: 3, Partitioned: 1, Updated: 1}}, RolloutHealth{}, ""},
		"a Deployment whose pods a quota refuses": {&workload.Workload{Kind: kinds.KindDeployment, Rollout: &workload.Rollout{Refused: true}}, RolloutHealth{}, KeptRefused},
		"one that is stuck":                       {&workload.Workload{Kind: kinds.KindDeployment, Rollout: &workload.Rollout{}}, RolloutHealth{Reason: workload.StuckDeadline}, "ProgressDeadlineExceeded"},
		"a CronJob, of which a job runs":          {&workload.Workload{Kind: kinds.KindCronJob}, RolloutHealth{}, KeptJob},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, test.want, keptBy(test.w, test.health))
		})
	}
}
