package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestWhenAPodStartedBeforeTheDataWasWritten(t *testing.T) {
	at := func(second int) time.Time { return reloadtest.Birth.Add(time.Duration(second) * time.Second) }
	h := reloadtest.Hasher(t, 1)
	for sentence, test := range map[string]struct {
		created, written int
		bound            int
		started          int // 0: no container has
		optional         bool
		want             bool
	}{
		"bound before the data was written":                         {created: 10, written: 30, bound: 20, want: true},
		"bound after":                                               {created: 10, written: 30, bound: 40},
		"in the same second it may have read either":                {created: 10, written: 30, bound: 30, want: true},
		"that the object was created is no write":                   {created: 10, written: 10, bound: 20},
		"nor is it in the same second":                              {created: 10, written: 10, bound: 10, started: 11},
		"an optional object that was there and has changed":         {created: 10, written: 30, bound: 20, optional: true, want: true},
		"it waits for the object":                                   {created: 30, written: 30, bound: 20},
		"it has waited for the object":                              {created: 30, written: 30, bound: 20, started: 40},
		"its containers started as soon as the object was there":    {created: 30, written: 30, bound: 20, started: 30},
		"its containers read an earlier object of that name":        {created: 30, written: 30, bound: 20, started: 25, want: true},
		"it waited, and read the first data":                        {created: 30, written: 40, bound: 20, started: 35, want: true},
		"it waited, and may have read the first data":               {created: 30, written: 40, bound: 20, started: 40, want: true},
		"it waited, and read the data of now":                       {created: 30, written: 40, bound: 20, started: 50},
		"an optional object that it started without has come since": {created: 30, written: 40, bound: 20, started: 25, optional: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := secret(h, "s", refs.Env, reloadtest.Data{"k": "v"}, "k")
			c.CreatedAt, c.ChangedAt, c.Optional = at(test.created), at(test.written), test.optional
			pod := &workload.Pod{BoundAt: at(test.bound), References: []refs.Reference{c.Reference}}
			if test.started > 0 {
				pod.StartedAt = uint32(at(test.started).Unix())
			}
			require.Equal(t, test.want, c.IsStale([]*workload.Pod{pod}))
			require.False(t, c.IsStale(nil), "no pod runs")
			c.ChangedAt = time.Time{}
			require.False(t, c.IsStale([]*workload.Pod{pod}), "nobody knows when it was written")
		})
	}
}

func TestOnlyWhatIsReadAtTheStartGoesStale(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	for mode, want := range map[refs.Mode]bool{refs.Env: true, refs.EnvFrom: true, refs.SubPath: true, refs.Volume: false, refs.Listed: false, refs.ImagePull: false, refs.Mount: false} {
		c := secret(h, "s", mode, reloadtest.Data{"k": "v"})
		c.CreatedAt, c.ChangedAt = reloadtest.Birth, reloadtest.Birth.Add(time.Minute)
		require.Equal(t, want, c.IsStale([]*workload.Pod{{BoundAt: reloadtest.Birth, References: []refs.Reference{c.Reference}}}), mode)
		require.False(t, c.IsStale([]*workload.Pod{{BoundAt: reloadtest.Birth}}), "a pod of a template that did not consume it")
	}
}

func TestWhichWorkloadsHeadwaterFollowedFromTheStart(t *testing.T) {
	made := func(annotations map[string]string) *workload.Workload {
		return &workload.Workload{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(reloadtest.Birth), Annotations: annotations}}
	}
	require.True(t, made(nil).IsFollowed(reloadtest.Birth.Add(-time.Second)))
	require.False(t, made(nil).IsFollowed(reloadtest.Birth), "in the same second, an installation restarts nothing")
	require.False(t, made(nil).IsFollowed(reloadtest.Birth.Add(time.Hour)))
	require.False(t, made(nil).IsFollowed(time.Time{}), "nobody knows when that was")
	later := reloadtest.Birth.Add(time.Hour)
	require.True(t, made(map[string]string{mark.Baseline: "v2:…"}).IsFollowed(later))
	require.True(t, made(map[string]string{mark.RestartedAt: mark.FormatTime(reloadtest.Birth)}).IsFollowed(later))
	require.False(t, made(map[string]string{mark.Reload: "Auto"}).IsFollowed(later), "its owner's, not a trace")
	stamped := made(nil)
	stamped.Stamp = 1
	require.True(t, stamped.IsFollowed(later))
}

func stale(c decide.Input) decide.Input { c.Stale = true; return c }

func TestWhatPodsMissedBeforeTheFirstLookIsAChange(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	current := secret(h, "s", refs.Env, reloadtest.Data{"k": "now"}, "k")
	other := secret(h, "other", refs.Env, reloadtest.Data{"k": "1"}, "k")
	judge := func(stored string, consumed ...decide.Input) decide.Decision {
		return judged(h, testUID, stored, consumed)
	}

	d := judge("", stale(current), other)
	require.Equal(t, spec.StepRestart, d.Step)
	require.Equal(t, []string{current.Object.String()}, d.Changed)
	require.Equal(t, spec.StepNothing, judge(d.Baseline, current, other).Step, "it is restarted once")

	waiting := judge(d.BaselineWhileWaiting, current, other)
	require.Equal(t, spec.StepRestart, waiting.Step, "while it waits that is recorded, so that a next leader finds it")
	require.Equal(t, d.Changed, waiting.Changed)
	require.Equal(t, d.BaselineWhileWaiting, waiting.BaselineWhileWaiting)
	require.Equal(t, spec.StepNothing, judge(delivered(d).Baseline, current, other).Step)

	adopted := judge("", other)
	require.Equal(t, spec.StepAdopt, adopted.Step)
	require.Equal(t, spec.StepRestart, judge(adopted.Baseline, other, stale(current)).Step, "a new reference, too")
	require.Equal(t, spec.StepNothing, judge(d.Baseline, stale(current), other).Step, "what is recorded decides")
	unstamped := stale(current)
	unstamped.Unstamped = true
	require.Equal(t, spec.StepRestart, judge(d.Baseline, unstamped, other).Step, "but not where the stamp of it was taken off")

	initial := secret(h, "i", refs.InitVolume, reloadtest.Data{"k": "now"})
	require.Equal(t, spec.StepAdopt, judge("", stale(initial)).Step, "earlier versions recorded no volume of an init container")
	require.Equal(t, spec.StepAdopt, judge(adopted.Baseline, other, stale(initial)).Step)

	require.Equal(t, spec.StepAdopt, judge("v1:x:y", stale(current)).Step, "a baseline that cannot be read")
	lost := judged(reloadtest.Hasher(t, 2), testUID, d.Baseline, []decide.Input{stale(current)})
	require.Equal(t, spec.ReasonOtherKey, lost.Reason, "a lost key restarts nothing")
	require.Equal(t, spec.StepAdopt, lost.Step)
	require.Equal(t, spec.StepAdopt, judge("", requiring(under(secret(h, "s", refs.Volume, reloadtest.Data{"k": "now"}), spec.Restart)), other).Step)
	noted := judge("", stale(current), missing(other))
	require.Equal(t, spec.StepHold, judge(noted.Baseline, current, missing(other)).Step, "its pods could not start")
}

func TestWhenTheContainersOfAPodStarted(t *testing.T) {
	at := func(second int) metav1.Time {
		return metav1.NewTime(reloadtest.Birth.Add(time.Duration(second) * time.Second))
	}
	running := func(second int) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(second)}}}
	}
	ended := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(5)}}}
	waiting := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}}}
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting}}}
	require.Zero(t, workload.StartedAt(pod))
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, running(9), running(8))
	require.Equal(t, at(8).Time, workload.StartedAt(pod))
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{ended}
	require.Equal(t, at(5).Time, workload.StartedAt(pod))
}
