package reload

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/test/lab"
)

// ordered makes the StatefulSet db, whose pods become what is says once a restart created them,
// and are ready before.
func (e *env) ordered(namespace string, replicas int32, is *atomic.Int64) {
	e.Helper()
	e.PlayKubelet("status.phase=Pending,metadata.namespace="+namespace, func(_ context.Context, pod *corev1.Pod) (lab.Health, error) {
		if pod.Annotations[mark.RestartedFor] == "" {
			return lab.Runs, nil
		}
		return lab.Health(is.Load()), nil
	})
	e.Create(namespace, lab.StatefulSet(namespace, "db", replicas, lab.ByEnv("shared", "used")))
	e.setReady(namespace, replicas)
}

// setReady waits until so many pods of db are ready, all of its newest template.
func (e *env) setReady(namespace string, replicas int32) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		set, err := e.Admin.AppsV1().StatefulSets(namespace).Get(ctx, "db", metav1.GetOptions{})
		if err != nil {
			return err
		}
		is := set.Status
		return lab.ErrorIf(is.ObservedGeneration != set.Generation || is.ReadyReplicas != replicas || is.UpdatedReplicas != replicas, "%+v", is)
	})
}

// stands waits until the set waits for the pod with that ordinal, which its template does not
// replace any more.
func (e *env) stands(namespace string, ordinal int) (pod *corev1.Pod) {
	e.Helper()
	e.Eventually(func(ctx context.Context) (err error) {
		set, err := e.Admin.AppsV1().StatefulSets(namespace).Get(ctx, "db", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod, err = e.Admin.CoreV1().Pods(namespace).Get(ctx, fmt.Sprintf("db-%d", ordinal), metav1.GetOptions{}); err != nil {
			return err
		}
		older := pod.Labels["controller-revision-hash"] != set.Status.UpdateRevision
		return lab.ErrorIf(set.Status.ObservedGeneration != set.Generation || !older || pod.Annotations[mark.RestartedFor] == "", "it does not stand")
	})
	return pod
}

func (e *env) deletes(pod *corev1.Pod) {
	e.Helper()
	require.NoError(e, e.Admin.CoreV1().Pods(pod.Namespace).Delete(e.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
}

// Its controller does not replace a pod that never got ready, even when its template was put
// right (kubernetes/kubernetes#67250).
func TestAStatefulSetThatStandsIsToldUntilItsPodIsDeleted(t *testing.T) {
	e, namespace := onNode(t, "stands")
	statuses := e.RuleStatuses()
	h := e.Reloads("stands")
	var is atomic.Int64
	e.ordered(namespace, 2, &is)
	e.Settled(h)
	e.SecondLater()
	restarted := func(what func()) {
		t.Helper()
		before := e.Stamps(namespace)
		what()
		e.Restarted(namespace, before, "StatefulSet/db")
	}
	standing := map[string]string{"rule": "stands", "reason": "Standing"}
	crashing := map[string]string{"rule": "stands", "reason": "CrashLoopBackOff"}

	is.Store(int64(lab.Crashes))
	restarted(func() { e.Change("stands", "used", "2") })
	require.Contains(t, e.HasEvent(namespace, "db", "RolloutStuck"), "If the change is wrong, undo it")
	e.HasMetric(h, 1, "headwater_reload_rollouts_stuck", crashing)

	restarted(func() { e.Change("stands", "used", "1") }) // which does not end it
	pod := e.stands(namespace, 1)
	e.HasMetric(h, 1, "headwater_reload_rollouts_stuck", standing)
	e.HasMetric(h, 0, "headwater_reload_rollouts_stuck", crashing)
	e.HasNote(namespace, "db", "RolloutStuck", "Delete pod db-1: the set replaces no pod before it is ready")
	e.Eventually(func(ctx context.Context) error {
		status, err := lab.RuleStatus(ctx, statuses, "stands")
		if err != nil {
			return err
		}
		reloaded := status.Status.Condition(rulestatus.Reloaded)
		return lab.ErrorIf(reloaded == nil || reloaded.Message != "1 rollout stuck: 1 Standing (StatefulSet/"+namespace+"/db, pod db-1)", "%+v", reloaded)
	})
	_, rollout := e.standing(e.Viewer("stands-viewer"), e.ConfigFile(lab.ReloadRule("stands")), "StatefulSet/"+namespace+"/db")
	require.Equal(t, health.RolloutHealth{Health: health.Stuck, Reason: "Standing", Pod: "db-1"}, rollout.RolloutHealth)

	e.SecondLater()
	restarted(func() { e.Change("stands", "used", "3") }) // at once: nothing is gained by waiting for this rollout
	e.HasMetric(h, 1, "headwater_reload_rollouts_stuck", standing)
	h.Stop()
	h = e.Start(lab.ReloadRule("stands"))
	e.HasMetric(h, 1, "headwater_reload_rollouts_stuck", standing)

	is.Store(int64(lab.Runs))
	e.deletes(pod)
	e.setReady(namespace, 2)
	e.HasMetric(h, 0, "headwater_reload_rollouts_stuck", standing)
}

// Its pod says nothing about another revision than the one that it is stamped for.
func TestAStatefulSetThatStandsShowsNothingOfTheNextRevision(t *testing.T) {
	for sentence, test := range map[string]struct {
		fails   lab.Health
		timeout string
	}{
		"its pod crashes, and is deleted":         {fails: lab.Crashes, timeout: "30m"},
		"its pod is never ready, and is deleted":  {fails: lab.Hangs, timeout: "30m"},
		"its pod crashes until the time is over":  {fails: lab.Crashes, timeout: "5s"},
		"its pod is not ready until time is over": {fails: lab.Hangs, timeout: "5s"},
	} {
		t.Run(sentence, func(t *testing.T) {
			prefix := map[string]string{"30m": "next", "5s": "late"}[test.timeout] + map[lab.Health]string{lab.Crashes: "-crash", lab.Hangs: "-hang"}[test.fails]
			s := newStaged(newEnv(t), prefix, asIs)
			s.RuleStatuses()
			require.NoError(t, lab.Bind(t.Context(), s.Admin, "headwater-view", prefix+"-oncall"))
			require.NoError(t, lab.BindIn(t.Context(), s.Admin, lab.Namespace, "headwater-deliver", prefix+"-oncall"))
			s.begin()
			var is atomic.Int64
			s.ordered(s.canary, 1, &is)
			s.ready()
			is.Store(int64(test.fails))
			s.edit("bad")
			if test.fails == lab.Hangs { // it is rejected for not getting ready, once it is known to have started
				s.shows("2", func(e revisions.Evidence) bool {
					return len(e.Stages) == 1 && e.Stages[0].Waiting == 1 && e.Stages[0].Unclear == 0
				})
				s.timeout = "1s"
				s.ConfigFile(s.rule())
			}
			s.verdict("2", revisions.Rejected)
			s.HasClone(s.canary, "shared", map[string]string{"used": "1", "unused": "1"})
			pod := s.stands(s.canary, 0)

			is.Store(int64(lab.Runs))
			s.timeout = test.timeout
			s.ConfigFile(s.rule())
			s.SecondLater()
			s.edit("good")
			stamp := s.before["StatefulSet/db"]
			s.Eventually(func(context.Context) error {
				return lab.ErrorIf(s.Stamps(s.canary)["StatefulSet/db"] == stamp, "it is not restarted for the right revision")
			})
			evidence := s.shows("3", func(e revisions.Evidence) bool { return len(e.Causes) == 1 && e.Causes[0].Reason == "Standing" })
			require.Equal(t, "db-0", evidence.Causes[0].Pod)
			require.Empty(t, evidence.Before, "what was taken back excuses nobody")
			if test.timeout == "5s" {
				s.verdict("3", revisions.Held)
				note := s.HasEvent(prefix+"-src", "shared", "DeliveryHeld")
				require.Contains(t, note, "Standing in pod db-0")
				require.Contains(t, note, "delete pod db-0 of "+s.canary+"/StatefulSet/db, for which its StatefulSet waits, and run `headwater retry "+prefix+"`")
			}
			s.deletes(pod)
			if test.timeout == "5s" {
				s.setReady(s.canary, 1)
				s.Reported(prefix)
				_, problem, exit := s.Command(prefix+"-oncall", "retry", prefix)
				require.Zero(t, exit, problem)
			}
			s.verdict("3", revisions.Delivered)
			s.HasClone(s.rest, "shared", map[string]string{"used": "good", "unused": "1"})
		})
	}
}
