package reload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// staged is a rule that delivers Secret shared of PREFIX-src to the namespaces PREFIX-a and
// PREFIX-b before PREFIX-z.
type staged struct {
	*env

	prefix, canary, rest string
	// soak is that of the canary, and timeout that of its gate.
	soak, timeout string
	onFailure     string
	// restart is true if the canary restarts what only mounts the Secret.
	restart bool
	// pace are more keys of the section reload, and gate of the gate.
	pace, gate string
	// selects says which namespaces the canary has, and stages are those after it.
	selects, stages string
	h               *lab.Headwater
	// before are the stamps of the canary when the source was last edited.
	before map[string]string
}

// newStaged makes the namespaces, the source and a node.
func newStaged(e *env, prefix string, change func(*staged)) *staged {
	e.Helper()
	s := &staged{env: e, prefix: prefix, soak: "0s", timeout: "30m", onFailure: "Rollback", pace: "minInterval: 0s"}
	s.selects = fmt.Sprintf("include: [%[1]s-a, %[1]s-b]", prefix)
	change(s)
	e.Node(prefix + "-node")
	s.canary, s.rest = e.Stage(prefix), e.Namespace(prefix+"-z")
	return s
}

// begin starts the rule, whose first revision is delivered to both namespaces.
func (s *staged) begin() {
	s.Helper()
	s.h = s.Start(s.rule())
	s.begun()
}

func (s *staged) rule() string {
	return fmt.Sprintf(`
- name: %[1]s
  source: {kind: Secret, namespace: %[1]s-src, name: shared}
  sync:
    namespaces: {include: ["%[1]s-*"]}
    delivery:
      stages: [{name: canary, namespaces: {%[7]s}, soak: %[2]s, restart: %[5]t}%[9]s]
      gate: {timeout: %[3]s%[8]s}
      onFailure: %[4]s
  reload: {debounce: 0s, %[6]s}
`, s.prefix, s.soak, s.timeout, s.onFailure, s.restart, s.pace, s.selects, s.gate, s.stages)
}

// begun waits until the first revision is delivered.
func (s *staged) begun() {
	s.Helper()
	s.verdict("1", revisions.Delivered)
	for _, namespace := range []string{s.canary, s.rest} {
		s.HasClone(namespace, "shared", map[string]string{"used": "1", "unused": "1"})
	}
}

// ready waits until an edit can be told from everything before it.
func (s *staged) ready() {
	s.Helper()
	s.Settled(s.h)
	s.SecondLater()
}

// deliver is the usual start: a Deployment web of so many pods in the canary reads the
// Secret.
func (e *env) deliver(prefix string, replicas int32, change func(*staged)) *staged {
	e.Helper()
	s := newStaged(e, prefix, change)
	s.begin()
	s.serving(s.canary, "web", replicas, lab.ByEnv("shared", "used"))
	s.ready()
	return s
}

func asIs(*staged) {}

// held is a delivery that holds what fails.
func held(s *staged) { s.onFailure = "Hold" }

// edit edits the source.
func (s *staged) edit(value string) {
	s.before = s.Stamps(s.canary)
	s.Change(s.prefix, "used", value)
}

// restarted waits until a Deployment of the canary is restarted for the last edit: until then,
// what was rolled out before is still so.
func (s *staged) restarted(name string) {
	s.Helper()
	s.Eventually(func(context.Context) error {
		return lab.ErrorIf(s.Stamps(s.canary)["Deployment/"+name] == s.before["Deployment/"+name], "%s is not restarted for the edit", name)
	})
}

// runs is restarted, and plays the kubelet until that is rolled out.
func (s *staged) runs(name string) {
	s.Helper()
	s.restarted(name)
	s.rolledOut(s.canary, name)
}

// verdict waits until the revision with that number has the verdict.
func (s *staged) verdict(number string, want revisions.Verdict) {
	s.Helper()
	s.Verdict(s.prefix, number, want)
}

// shows waits until the evidence on the revision with that number matches.
func (s *staged) shows(number string, matches func(revisions.Evidence) bool) (last revisions.Evidence) {
	s.Helper()
	s.Eventually(func(context.Context) (err error) {
		one := s.Revision(s.prefix, number)
		if one == nil {
			return fmt.Errorf("no revision %s", number)
		}
		if last, err = revisions.ParseEvidence(one.Annotations[mark.Evidence]); err == nil && !matches(last) {
			err = fmt.Errorf("revision %s shows %s", number, last)
		}
		return err
	})
	return last
}

// stays shows that the namespace behind the canary keeps the first value.
func (s *staged) stays() {
	s.Helper()
	s.Stays(func(context.Context) error {
		clone := s.Get(s.rest, "shared")
		return lab.ErrorIf(clone == nil || string(clone.Data["used"]) != "1", "the value went past the canary")
	})
}

// has waits until the namespace behind the canary has that value.
func (s *staged) has(value string) {
	s.Helper()
	s.HasClone(s.rest, "shared", map[string]string{"used": value, "unused": "1"})
}

// podsOf lists the pods of a Deployment.
func (e *env) podsOf(ctx context.Context, namespace, name string) ([]corev1.Pod, error) {
	pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	return pods.Items, err
}

// isCrashing plays the kubelet of pods whose containers do not stay up: those of a
// Deployment's last template that are not ready yet.
func (e *env) isCrashing(namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.podsOf(ctx, namespace, name)
		if err != nil {
			return err
		}
		crashing, stamp := 0, e.read(namespace, name).Spec.Template.Annotations[mark.RestartedFor]
		for i := range pods {
			ready := slices.ContainsFunc(pods[i].Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
			if pods[i].Spec.NodeName == "" || ready || pods[i].DeletionTimestamp != nil || pods[i].Annotations[mark.RestartedFor] != stamp {
				continue
			}
			if err := lab.SetCrashing(ctx, e.Admin, &pods[i]); err != nil {
				return err
			}
			crashing++
		}
		return lab.ErrorIf(crashing == 0, "no new pod is on a node yet")
	})
}

// recreating makes a Deployment that ends all its pods before it starts new ones.
func (e *env) recreating(namespace, name string) {
	e.Helper()
	d := lab.Deployment(namespace, name, 1, lab.ByEnv("shared", "used"))
	d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	_, err := e.Admin.AppsV1().Deployments(namespace).Create(e.Context(), d, metav1.CreateOptions{})
	require.NoError(e, err)
	e.rolledOut(namespace, name)
}

// gone deletes the pods of a Deployment that terminate, as their kubelet does.
func (e *env) gone(namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.podsOf(ctx, namespace, name)
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil {
				err = errors.Join(err, e.Admin.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
			}
		}
		return err
	})
}

func waits(e revisions.Evidence) bool { return len(e.Stages) > 0 && e.Stages[0].Waiting > 0 }

func ran(e revisions.Evidence) bool { return len(e.Stages) > 0 && e.Stages[0].Ran > 0 }

// Invariant D10: a reader ran the revision before the next stage starts.
func TestADeliveryGoesOnWhenTheReadersOfItsStageRanIt(t *testing.T) {
	e := newEnv(t)
	e.Namespace("rep-b") // has no consumers
	s := e.deliver("rep", 2, asIs)
	s.edit("2")
	s.shows("2", waits)
	s.stays()
	s.runs("web")
	s.verdict("2", revisions.Delivered)
	s.has("2")
	is := s.shows("2", ran)
	require.Equal(t, 1, is.Readers)
	require.Empty(t, is.Before)
	for _, namespace := range []string{s.canary, "rep-b"} {
		require.Empty(t, s.Get(namespace, "shared").Annotations["headwater.dev/consumers"], "nothing is written on clones")
	}
	s.Settled(s.h)
	quiet := s.Cluster.Mark()
	s.Stays(s.NoWrites(quiet))
}

// Invariant D2, with consumers.
func TestARevisionThatBreaksAConsumerIsTakenBack(t *testing.T) {
	s := newEnv(t).deliver("bad", 2, asIs)
	s.edit("2")
	s.isCrashing(s.canary, "web")
	s.verdict("2", revisions.Rejected)
	for _, namespace := range []string{s.canary, s.rest} {
		s.HasClone(namespace, "shared", map[string]string{"used": "1", "unused": "1"})
	}
	note := s.HasEvent("bad-src", "shared", "DeliveryRolledBack")
	require.Contains(t, note, "every clone gets revision 1 again")
	s.HasMetric(s.h, 1, "headwater_delivery_failures_total", map[string]string{"rule": "bad"})
}

// Somebody changes the template, and the value is edited before a pod started.
func TestARolloutOfSomebodyElseIsNoExcuse(t *testing.T) {
	e := newEnv(t)
	s := newStaged(e, "foreign", func(s *staged) { s.timeout = "8s" })
	s.begin()
	s.recreating(s.canary, "web")
	s.ready()
	s.patched(s.canary, "web", newImage)
	s.Settled(s.h) // it has seen that
	s.edit("2")
	is := s.shows("2", func(e revisions.Evidence) bool { return e.Look == "canary" })
	require.Equal(t, map[string]revisions.Condition{s.canary + "/Deployment/web": revisions.Rolling}, is.Before)
	s.gone(s.canary, "web")
	s.isCrashing(s.canary, "web")
	s.verdict("2", revisions.Held) // it is not clear which of the two broke it
	s.stays()
}

// Its clones are of the new name at once, and what fails in them is still known.
func TestARenamedRuleKeepsItsDelivery(t *testing.T) {
	s := newEnv(t).deliver("former", 1, held)
	s.serving(s.rest, "web", 1, lab.ByEnv("shared", "used"))
	s.edit("2")
	s.isCrashing(s.canary, "web")
	s.verdict("2", revisions.Held)
	s.ConfigFile(strings.Replace(s.rule(), "name: former", "name: latter", 1))
	s.Eventually(func(ctx context.Context) error {
		for _, namespace := range []string{s.canary, s.rest} {
			if clone := s.Get(namespace, "shared"); clone == nil || clone.Annotations[mark.Rule] != "latter" {
				return errors.New("the clone is of the former rule")
			}
		}
		all, err := s.Admin.CoreV1().Secrets(lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: mark.Rule + "=latter," + mark.Revision + "=2"})
		if err != nil || len(all.Items) == 0 {
			return fmt.Errorf("no revision of the new name: %w", err)
		}
		is, err := revisions.ParseEvidence(all.Items[0].Annotations[mark.Evidence])
		return cmp.Or(err, lab.ErrorIf(is.Readers != 2 || !is.FailsIn(s.canary), "it is known of readers: %s", is))
	})
}

func TestTwoQuickEditsHideNothing(t *testing.T) {
	e := newEnv(t)
	s := newStaged(e, "quick", held)
	s.begin()
	s.recreating(s.canary, "web")
	s.ready()
	s.edit("2")
	s.shows("2", waits)
	s.edit("3")
	s.shows("3", waits)
	s.stays()
	s.gone(s.canary, "web")
	s.isCrashing(s.canary, "web")
	s.verdict("3", revisions.Held)
	s.stays()
}

func TestAWorkloadThatStartsSlowlyIsWaitedFor(t *testing.T) {
	e := newEnv(t)
	s := newStaged(e, "slow", asIs)
	s.begin()
	s.ready()
	_, err := e.Admin.AppsV1().Deployments(s.canary).Create(e.Context(), lab.Deployment(s.canary, "web", 1, lab.ByEnv("shared", "used")), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Eventually(func(ctx context.Context) error {
		pods, err := s.podsOf(ctx, s.canary, "web")
		return errors.Join(err, lab.ErrorIf((len(pods) == 0 || pods[0].Spec.NodeName == ""), "its pod is on no node yet"))
	})
	s.edit("2")
	s.shows("2", waits)
	s.stays()
	s.rolledOut(s.canary, "web")
	s.has("2")
}

func TestEveryConsumerThatFailedIsRemembered(t *testing.T) {
	e := newEnv(t)
	s := newStaged(e, "six", held)
	s.begin()
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range names {
		s.serving(s.canary, name, 1, lab.ByEnv("shared", "used"))
	}
	s.ready()
	s.edit("2")
	for _, name := range names {
		s.isCrashing(s.canary, name)
	}
	s.verdict("2", revisions.Held)
	s.shows("2", func(e revisions.Evidence) bool { return len(e.Failing) == len(names) })
	s.SecondLater()
	s.edit("3") // fixes five
	for _, name := range names[:5] {
		s.restarted(name)
		s.replaced(s.canary, name)
		s.rolledOut(s.canary, name)
	}
	s.restarted("f")
	s.replaced(s.canary, "f")
	s.isCrashing(s.canary, "f")
	s.verdict("3", revisions.Held)
	s.stays()
}

// replaced deletes the crashing pods of a Deployment that do not belong to its template.
func (s *staged) replaced(namespace, name string) {
	s.Helper()
	s.Eventually(func(ctx context.Context) error {
		pods, err := s.podsOf(ctx, namespace, name)
		stamp := s.read(namespace, name).Spec.Template.Annotations[mark.RestartedFor]
		for _, pod := range pods {
			crashes := len(pod.Status.ContainerStatuses) > 0 && lab.InCrashLoop(pod.Status.ContainerStatuses[0])
			if crashes && pod.Annotations[mark.RestartedFor] != stamp {
				err = errors.Join(err, s.Admin.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
			}
		}
		return err
	})
}

func TestAPodThatIsReplacedInTheSoakCounts(t *testing.T) {
	e := newEnv(t)
	s := newStaged(e, "soak", func(s *staged) { s.soak = "30m" })
	s.begin()
	s.serving(s.canary, "web", 1, lab.ByVolume("shared"))
	s.ready()
	s.edit("2")
	s.shows("2", func(e revisions.Evidence) bool { return len(e.Stages) > 0 && e.Stages[0].Refreshed == 1 })
	s.SecondLater()
	require.NoError(t, e.Admin.CoreV1().Pods(s.canary).DeleteCollection(e.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{LabelSelector: "app=web"}))
	s.isCrashing(s.canary, "web")
	s.verdict("2", revisions.Rejected)
	s.stays()
}

// Invariant D14, and the restart for a rollback waits for no pace.
func TestTheRestartThatTakesARevisionBackWaitsForNoPace(t *testing.T) {
	s := newEnv(t).deliver("pace", 1, func(s *staged) { s.pace = "minInterval: 1h, maxRestartsPerHour: 1" })
	before := s.Stamps(s.canary)
	s.edit("2")
	s.isCrashing(s.canary, "web")
	s.verdict("2", revisions.Rejected)
	s.Eventually(func(context.Context) error {
		if now := s.Stamps(s.canary)["Deployment/web"]; s.rollouts(s.canary, "web") < 3 || now == before["Deployment/web"] {
			return errors.New("it was not restarted for the rollback")
		}
		return nil
	})
	s.rolledOut(s.canary, "web")
	s.SecondLater()
	s.edit("3") // the fix waits for the limit, for longer than the gate's timeout
	s.shows("3", func(e revisions.Evidence) bool { return len(e.Stages) > 0 && e.Stages[0].Paced == 1 })
	s.timeout = "12s" // now that it waits, however long that took
	s.ConfigFile(s.rule())
	s.HasMetric(s.h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	s.Holds(14*time.Second, func(context.Context) error {
		is := s.Revision(s.prefix, "3").Annotations
		return lab.ErrorIf(is[mark.Verdict] != string(revisions.Delivering), "revision 3 is %s: %s", is[mark.Verdict], is[mark.Reason])
	})
}

func TestTroubleOfAnotherKindStopsNoDelivery(t *testing.T) {
	e := newEnv(t)
	s := newStaged(e, "noise", asIs)
	s.begin()
	s.serving(s.canary, "files", 5, lab.ByVolume("shared"))
	s.serving(s.canary, "image", 1, lab.ByEnv("shared", "used"))
	s.serving(s.canary, "web", 2, lab.ByEnv("shared", "used"))
	s.ready()
	s.edit("2")
	s.shows("2", waits)
	files, err := s.podsOf(e.Context(), s.canary, "files")
	require.NoError(t, err)
	s.condition(&files[0], corev1.ConditionFalse, corev1.ConditionFalse) // for an instant
	s.condition(&files[1], corev1.ConditionFalse, corev1.ConditionTrue)  // its node is lost
	s.SecondLater()
	s.patched(s.canary, "image", newImage)
	s.report(s.canary, "image", func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image == "app:2" }, s.keptWaiting("ImagePullBackOff"))
	s.condition(&files[0], corev1.ConditionTrue, corev1.ConditionTrue)
	s.runs("web")
	s.verdict("2", revisions.Delivered)
	s.has("2")
}

// condition plays the kubelet of a pod, or the controller of a lost node.
func (s *staged) condition(pod *corev1.Pod, ready, containersReady corev1.ConditionStatus) {
	s.Helper()
	s.Eventually(func(ctx context.Context) error {
		now, err := s.Admin.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Status.Conditions = slices.DeleteFunc(now.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady || c.Type == corev1.ContainersReady
		})
		now.Status.Conditions = append(now.Status.Conditions,
			corev1.PodCondition{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()},
			corev1.PodCondition{Type: corev1.ContainersReady, Status: containersReady, LastTransitionTime: metav1.Now()})
		_, err = s.Admin.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
}

// The canary shows that a consumer starts with the value, although its files could be
// refreshed.
func TestACanaryCanProveAStart(t *testing.T) {
	e := newEnv(t)
	s := newStaged(e, "start", func(s *staged) { s.restart = true })
	s.begin()
	s.serving(s.canary, "web", 1, lab.ByVolume("shared"))
	s.ready()
	s.edit("2")
	s.isCrashing(s.canary, "web")
	s.verdict("2", revisions.Rejected)
	s.rolledOut(s.canary, "web") // it was restarted for the rollback, too
	require.Equal(t, 3, s.rollouts(s.canary, "web"))
	s.stays()
	s.SecondLater()
	s.edit("3")
	s.shows("3", waits)
	s.runs("web")
	s.verdict("3", revisions.Delivered)
	require.Equal(t, 1, s.shows("3", ran).Stages[0].Ran)
}
