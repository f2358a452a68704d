package reload

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// recordedRevision is a revision of the source of rule base.
func recordedRevision(number, value, verdict, stage string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "headwater", Name: "headwater-revision-base-" + number, UID: "revision-uid", ResourceVersion: "1",
			Labels: map[string]string{mark.Revision: number},
			Annotations: map[string]string{
				mark.Rule: "base", mark.Source: "Secret/platform/base", mark.Verdict: verdict, mark.Stage: stage,
			},
		},
		Data: map[string][]byte{"password": []byte(value)},
	}
}

// stagedRule delivers to the namespace team before others.
func stagedRule(t *testing.T, restart bool) spec.Rule {
	t.Helper()
	rule := testRule(t, spec.Auto).ClonedAs("", everywhere(t))
	var err error
	rule.Stages, err = stages.Compile(stages.Delivery{Stages: []stages.Stage{
		{Name: "canary", Namespaces: &stages.StageNamespaces{Include: []string{"team"}}, Restart: restart},
	}})
	require.NoError(t, err)
	return rule
}

func everywhere(t *testing.T) rules.Matcher {
	t.Helper()
	matcher, err := rules.Namespaces{Include: []string{"*"}}.Compile()
	require.NoError(t, err)
	return matcher
}

func teamNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
}

// awaitEvidence waits until what the revision with that number records matches.
func (f *fixture) awaitEvidence(number string, matches func(revisions.Evidence) bool) (last revisions.Evidence) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		secret, err := f.client.CoreV1().Secrets("headwater").Get(f.t.Context(), "headwater-revision-base-"+number, metav1.GetOptions{})
		require.NoError(f.t, err)
		last, err = revisions.ParseEvidence(secret.Annotations[mark.Evidence])
		require.NoError(f.t, err)
		return matches(last)
	}, soon, 10*time.Millisecond, "the evidence does not come to match")
	return last
}

// podOfWeb is a ready pod of the Deployment web that was bound at that time.
func podOfWeb(bound time.Time) *corev1.Pod {
	pod := mountingPod()
	pod.Name, pod.UID, pod.Labels = "web-7f-1", "web-7f-1", map[string]string{"pod-template-hash": "7f"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7f", UID: "web-7f", Controller: new(true)}}
	pod.Spec.Containers = reloadtest.Web().Spec.Template.Spec.Containers
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(bound)},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}
	return pod
}

// servingWeb is the Deployment web, with one replica that is available.
func servingWeb() *appsv1.Deployment {
	web := reloadtest.Web()
	web.Spec.Replicas = new(int32(1))
	web.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	return web
}

func TestARevisionSaysWhatItsReadersShowOfIt(t *testing.T) {
	f := newFixture(t, cloneOf("7"), teamNamespace(), recordedRevision("7", "7", "Delivering", "canary"), servingWeb(), podOfWeb(time.Now().Add(-time.Hour)))
	f.live.Swap(rules.NewSet(stagedRule(t, false)))
	stop := f.lead()
	defer stop()
	waiting := f.awaitEvidence("7", func(e revisions.Evidence) bool { return e.UpTo == "7" })
	require.Equal(t, "canary", waiting.Look)
	require.Equal(t, 1, waiting.Readers)
	require.Equal(t, []revisions.StageEvidence{{Name: "canary", Waiting: 1, Unclear: 1, Namespaces: 1, Unhealthy: 1}}, waiting.Stages, "nothing is known of the data that its pod started with")
	require.NotEmpty(t, waiting.By)

	pods := f.client.CoreV1().Pods("team")
	later := podOfWeb(time.Now().Add(2 * time.Second))
	later.Name, later.UID = "web-7f-2", "web-7f-2"
	_, err := pods.Create(t.Context(), later, metav1.CreateOptions{})
	require.NoError(t, err)
	f.awaitEvidence("7", func(e revisions.Evidence) bool { return e.Stages[0].Ran == 1 && e.Stages[0].Unhealthy == 0 })

	later = later.DeepCopy()
	later.ResourceVersion = "2"
	later.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	_, err = pods.Update(t.Context(), later, metav1.UpdateOptions{})
	require.NoError(t, err)
	failing := f.awaitEvidence("7", func(e revisions.Evidence) bool { return len(e.Failing) > 0 })
	require.Equal(t, []string{"team/Deployment/web"}, failing.Failing)
	require.Equal(t, []revisions.Cause{{Consumer: "team/Deployment/web", Reason: "CrashLoopBackOff", Pod: "web-7f-2", Failing: true}}, failing.Causes)
}

// Invariant D11, of evidence that cannot be brought up to date.
func TestNothingIsBelievedWhileWhatChangedCannotBeWritten(t *testing.T) {
	f := newFixture(t, cloneOf("7"), teamNamespace(), recordedRevision("7", "7", "Delivering", "canary"), servingWeb(), podOfWeb(time.Now().Add(2*time.Second)))
	var refused atomic.Int32
	refuses := atomic.Bool{}
	f.metadata.PrependReactor("patch", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
		if !refuses.Load() {
			return false, nil, nil
		}
		refused.Add(1)
		return true, nil, apierrors.NewServiceUnavailable("no")
	})
	f.live.Swap(rules.NewSet(stagedRule(t, false)))
	stop := f.lead()
	defer stop()
	before := f.awaitEvidence("7", func(e revisions.Evidence) bool { return len(e.Stages) > 0 && e.Stages[0].Ran == 1 })
	refuses.Store(true)
	require.NoError(t, f.client.CoreV1().Pods("team").Delete(t.Context(), "web-7f-1", metav1.DeleteOptions{}))
	failing := podOfWeb(time.Now().Add(time.Minute))
	failing.Name, failing.UID = "web-7f-2", "web-7f-2"
	failing.Status.Conditions = failing.Status.Conditions[:1]
	failing.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	_, err := f.client.CoreV1().Pods("team").Create(t.Context(), failing, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return refused.Load() > 0 }, soon, 10*time.Millisecond)
	refuses.Store(false)
	after := f.awaitEvidence("7", func(e revisions.Evidence) bool { return len(e.Failing) > 0 })
	require.NotEqual(t, before.By, after.By)
}

func TestAReaderOfACloneThatWasLeftBehindIsNone(t *testing.T) {
	f := newFixture(t, cloneOf("7"), teamNamespace(), recordedRevision("7", "7", "Delivering", "canary"), servingWeb(), podOfWeb(time.Now().Add(-time.Hour)))
	elsewhere, err := rules.Namespaces{Include: []string{"other"}}.Compile()
	require.NoError(t, err)
	f.live.Swap(rules.NewSet(stagedRule(t, false).ClonedAs("", elsewhere)))
	stop := f.lead()
	defer stop()
	require.Zero(t, f.awaitEvidence("7", func(e revisions.Evidence) bool { return e.UpTo == "7" }).Readers)
}

func TestALookWritesDownWhatFailedWithWhatWasDelivered(t *testing.T) {
	for sentence, test := range map[string]struct {
		held, verdict string // of the revision whose content the clone holds
		want          map[string]revisions.Condition
	}{
		"it was delivered":                  {"6", "Delivered", map[string]revisions.Condition{"team/Deployment/web": revisions.Failing}},
		"it was not delivered":              {"6", "Superseded", nil},
		"it is of no revision":              {"5", "Delivered", nil},
		"it is the revision that is coming": {"7", "Delivered", nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			failing := podOfWeb(time.Now().Add(time.Minute))
			failing.Status.Conditions = failing.Status.Conditions[:1]
			failing.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
			before := recordedRevision("6", "6", test.verdict, "")
			before.UID = "other-uid"
			f := newFixture(t, cloneOf(test.held), teamNamespace(), before, recordedRevision("7", "7", "Delivering", "canary"), servingWeb(), failing)
			f.live.Swap(rules.NewSet(stagedRule(t, false)))
			stop := f.lead()
			defer stop()
			looked := f.awaitEvidence("7", func(e revisions.Evidence) bool { return e.Look == "canary" })
			require.Equal(t, test.want, looked.Before)
		})
	}
}

func TestALookThatSomebodyDestroyedIsTakenAgain(t *testing.T) {
	for _, verdict := range []string{"Delivering", "Held"} {
		for _, forged := range []string{"{", `{"v":1,"by":"nobody","look":"rest"}`} {
			broken := recordedRevision("7", "7", verdict, "canary")
			broken.Annotations[mark.Evidence] = forged
			f := newFixture(t, cloneOf("7"), teamNamespace(), broken, servingWeb())
			f.live.Swap(rules.NewSet(stagedRule(t, false)))
			stop := f.lead()
			require.Eventually(t, func() bool {
				secret, err := f.client.CoreV1().Secrets("headwater").Get(t.Context(), broken.Name, metav1.GetOptions{})
				require.NoError(t, err)
				evidence, err := revisions.ParseEvidence(secret.Annotations[mark.Evidence])
				return err == nil && evidence.Look == "canary" && evidence.UpTo == "7"
			}, soon, 10*time.Millisecond, "%s, %s", verdict, forged)
			stop()
		}
	}
}

func TestNothingIsWrittenWithoutADeliveryThatAsks(t *testing.T) {
	for sentence, test := range map[string]struct {
		verdict string
		rule    func(*testing.T) spec.Rule
	}{
		"its delivery has ended":        {"Delivered", func(t *testing.T) spec.Rule { t.Helper(); return stagedRule(t, false) }},
		"it was taken back":             {"Rejected", func(t *testing.T) spec.Rule { t.Helper(); return stagedRule(t, false) }},
		"the rule delivers all at once": {"Delivering", func(t *testing.T) spec.Rule { t.Helper(); return testRule(t, spec.Auto) }},
		"its gate asks about nothing": {"Delivering", func(t *testing.T) spec.Rule {
			t.Helper()
			rule := stagedRule(t, false)
			rule.Stages.Gate.Consumers = stages.GateNone
			return rule
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFixture(t, cloneOf("7"), teamNamespace(), recordedRevision("7", "7", test.verdict, "canary"), reloadtest.Web())
			f.live.Swap(rules.NewSet(test.rule(t)))
			stop := f.lead()
			defer stop()
			f.expect("only the baseline is written", "deployments")
		})
	}
}
