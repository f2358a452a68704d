package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// ofRevision is the clone of revision 7 with that value and version.
func ofRevision(value string) *corev1.Secret {
	clone := cloneOf(value)
	clone.UID = "clone-uid"
	clone.Annotations[mark.Revision] = "7"
	return clone
}

func recordedRevision(verdict string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "headwater", Name: "headwater-revision-base-7", UID: "revision-uid", ResourceVersion: "1",
		Labels: map[string]string{mark.Revision: "7"},
		Annotations: map[string]string{
			mark.Rule: "base", mark.Source: "Secret/platform/base", mark.Verdict: verdict,
		},
	}}
}

func deliveredRule(t *testing.T) spec.Rule {
	t.Helper()
	rule := testRule(t, spec.Auto)
	rule.Delivered = true
	return rule
}

func (f *fixture) annotation(namespace, name, annotation string) string {
	secret, err := f.client.CoreV1().Secrets(namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	require.NoError(f.t, err)
	return secret.Annotations[annotation]
}

func (f *fixture) awaitReport(want string) {
	f.t.Helper()
	require.Eventually(f.t, func() bool { return f.annotation("team", "base", mark.Consumers) == want }, soon, 10*time.Millisecond,
		"%s, not %s", want, f.annotation("team", "base", mark.Consumers))
}

// crashingPod is a new pod of the Deployment web.
func crashingPod() *corev1.Pod {
	pod := mountingPod()
	pod.Name, pod.UID, pod.Labels = "web-7f-1", "web-7f-1", map[string]string{"pod-template-hash": "7f"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7f", UID: "web-7f", Controller: new(true)}}
	pod.Spec.Containers = reloadtest.Web().Spec.Template.Spec.Containers
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	}}
	return pod
}

func TestACloneSaysHowItsConsumersDoWithARevision(t *testing.T) {
	f := newFixture(t, ofRevision("1"), recordedRevision("Delivering"), reloadtest.Web())
	f.live.Swap(rules.NewSet(deliveredRule(t)))
	stop := f.lead()
	defer stop()
	f.awaitReport("7 Healthy")

	pods := f.client.CoreV1().Pods("team")
	_, err := pods.Create(t.Context(), crashingPod(), metav1.CreateOptions{})
	require.NoError(t, err)
	f.awaitReport("7 Unhealthy: Deployment/web: CrashLoopBackOff (pod web-7f-1)")
	require.NoError(t, pods.Delete(t.Context(), "web-7f-1", metav1.DeleteOptions{}))
	f.awaitReport("7 Healthy")
	f.metadata.ClearActions()
	f.expect("nothing changed, so nothing is written")
}

func TestACloneWithoutConsumersCostsNoWriteOfItsOwn(t *testing.T) {
	f := newFixture(t, ofRevision("5"), recordedRevision("Delivering"))
	f.live.Swap(rules.NewSet(deliveredRule(t)))
	stop := f.lead()
	defer stop()
	f.expect("the revision says that its clones are known", "secrets")
	require.Equal(t, "5", f.annotation("headwater", "headwater-revision-base-7", mark.ConsumersKnown))
	require.Empty(t, f.annotation("team", "base", mark.Consumers))
}

func TestARepairedCloneThatBrokeAConsumerStaysUnhealthyForTheNextLeader(t *testing.T) {
	now := time.Now()
	clone, revision, pod := ofRevision("1"), recordedRevision("Held"), crashingPod()
	clone.Annotations[mark.Consumers] = "7 Unhealthy: Deployment/web: CrashLoopBackOff (pod web-7f-1)"
	clone.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: mark.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: now}, FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`),
	}}
	revision.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Minute))
	pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
	f := newFixture(t, clone, revision, reloadtest.Web(), pod)
	f.live.Swap(rules.NewSet(deliveredRule(t)))
	stop := f.lead()
	defer stop()
	f.expect("only the baseline is written", "deployments")
}

func TestOnlyARevisionUnderWayIsReportedOn(t *testing.T) {
	for sentence, test := range map[string]struct {
		verdict string
		rule    func(*testing.T) spec.Rule
	}{
		"its delivery has ended":        {"Delivered", deliveredRule},
		"the rule delivers all at once": {"Delivering", func(t *testing.T) spec.Rule { t.Helper(); return testRule(t, spec.Auto) }},
		"it was taken back":             {"Rejected", deliveredRule},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFixture(t, ofRevision("1"), recordedRevision(test.verdict), reloadtest.Web())
			f.live.Swap(rules.NewSet(test.rule(t)))
			stop := f.lead()
			defer stop()
			f.expect("only the baseline is written", "deployments")
		})
	}
}
