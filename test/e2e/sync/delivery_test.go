package sync

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/test/harness"
)

// newStaged is a fleet of four namespaces whose rule delivers to the first two
// before the others. stage and with are more of the canary stage and the delivery.
func newStaged(t *testing.T, prefix, stage, with string) *fleet {
	t.Helper()
	return newStagedIn(newEnv(t), prefix, stage, with)
}

func newStagedIn(e *env, prefix, stage, with string) *fleet {
	e.Helper()
	f := newFleet(e, prefix, 4, "")
	f.rules = f.rule(fmt.Sprintf("namespaces: {selector: {matchLabels: {fleet: %s}}}, history: 3, delivery: {stages: [{name: canary, namespaces: {include: [%s, %s]}%s}]%s}",
		prefix, f.name(0), f.name(1), stage, with))
	return f
}

const waitsForApproval = ", approval: true"

func (f *fleet) edit(value string) {
	f.Helper()
	f.Edit(f.prefix+"-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte(value) })
}

// have waits until each namespace has its value.
func (f *fleet) have(values ...string) {
	f.Helper()
	for i, value := range values {
		f.HasClone(f.name(i), "shared", map[string]string{"k": value})
	}
}

func (f *fleet) revisions() []corev1.Secret {
	f.Helper()
	all, err := f.Admin.CoreV1().Secrets(harness.Namespace).List(f.Context(), metav1.ListOptions{LabelSelector: mark.Revision + "," + mark.Rule + "=" + f.prefix})
	require.NoError(f, err)
	return all.Items
}

// verdict waits until the revision with that number has the verdict.
func (f *fleet) verdict(number int, want delivery.Verdict) {
	f.Helper()
	f.Eventually(func(context.Context) error {
		for _, one := range f.revisions() {
			if one.Labels[mark.Revision] == fmt.Sprint(number) {
				if got := one.Annotations[mark.Verdict]; got != string(want) {
					return fmt.Errorf("revision %d is %s: %s", number, got, one.Annotations[mark.Reason])
				}
				return nil
			}
		}
		return fmt.Errorf("revision %d does not exist", number)
	})
}

// heldBy returns every value that the clone of each namespace ever had, by etcd's
// history.
func (f *fleet) heldBy(namespace string) map[string]bool {
	f.Helper()
	editions, _, err := f.Cluster.History(f.Context(), 1, "secrets")
	require.NoError(f, err)
	held := map[string]bool{}
	for _, edition := range editions {
		if secret, ok := edition.Object.(*corev1.Secret); ok && edition.Namespace == namespace && edition.Name == "shared" {
			held[string(secret.Data["k"])] = true
		}
	}
	return held
}

func (f *fleet) file() string { return filepath.Join(f.Dir, "headwater.yaml") }

// steer runs a command about the delivery.
func (f *fleet) steer(user, verb string, args ...string) {
	f.Helper()
	_, stderr, exit := f.Command(user, append([]string{verb, f.prefix, "--config", f.file()}, args...)...)
	require.Zero(f, exit, stderr)
}

// refuse makes the API server refuse updates of Secrets in one namespace, as
// somebody else's policy would, until allow is called.
func (f *fleet) refuse(namespace string) (allow func()) {
	f.Helper()
	api := f.Admin.AdmissionregistrationV1()
	meta := metav1.ObjectMeta{Name: "refuse-" + namespace}
	_, err := api.ValidatingAdmissionPolicies().Create(f.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("request.namespace != %q", namespace), Message: "refused by the test"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(f, err)
	_, err = api.ValidatingAdmissionPolicyBindings().Create(f.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	require.NoError(f, err)
	allow = func() {
		ctx := context.WithoutCancel(f.Context())
		_ = api.ValidatingAdmissionPolicyBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{})
		_ = api.ValidatingAdmissionPolicies().Delete(ctx, meta.Name, metav1.DeleteOptions{})
	}
	f.Cleanup(allow)
	f.Eventually(func(ctx context.Context) error {
		clone := f.Get(namespace, "shared")
		clone.Data["k"] = []byte("refused?")
		if _, err := f.Admin.CoreV1().Secrets(namespace).Update(ctx, clone, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
			return fmt.Errorf("updates in %s are not refused yet", namespace)
		}
		return nil
	})
	return allow
}

// Invariants D1 and D4.
func TestARevisionReachesALaterStageOnlyWhenItsTimeComes(t *testing.T) {
	f := newStaged(t, "staged", waitsForApproval, "")
	user := f.approver()
	h := f.StartAlone(f.rules)
	f.have("v", "v", "v", "v")
	f.verdict(1, delivery.Delivered)

	f.edit("w")
	f.have("w", "w", "v", "v")
	f.verdict(2, delivery.Delivering)
	f.HasNote(f.prefix+"-src", "shared", "DeliveryStarted", "revision 2 starts with stage canary")
	f.Settled(h)
	before := f.Cluster.Mark()
	f.Stays(f.NoWrites(before))
	f.HasMetric(h, 1, "headwater_delivery_sources", map[string]string{"rule": "staged", "verdict": "Delivering"})
	require.NotContains(t, f.heldBy(f.name(2)), "w")
	require.NotContains(t, f.heldBy(f.name(3)), "w")

	var history inspect.History
	f.Answers(user, &history, "history", "staged", "--config", f.file())
	require.Equal(t, 2, history.Sources[0].Revisions[0].Clones)
	require.Equal(t, "canary", history.Sources[0].Revisions[0].Stage)
	f.steer(user, "promote")
	f.have("w", "w", "w", "w")
	f.verdict(2, delivery.Delivered)
	f.HasNote(f.prefix+"-src", "shared", "Delivered", "revision 2 passed every stage")
}

// Invariants D2 and D5.
func TestARevisionThatFailsIsTakenBackAndStaysRejected(t *testing.T) {
	f := newStaged(t, "failing", "", ", gate: {timeout: 5s}")
	h := f.StartAlone(f.rules)
	f.have("v", "v", "v", "v")
	f.verdict(1, delivery.Delivered)
	allow := f.refuse(f.name(1))
	f.edit("bad")
	f.HasClone(f.name(0), "shared", map[string]string{"k": "bad"})
	f.verdict(2, delivery.Rejected)
	f.have("v", "v", "v", "v")
	f.HasNote(f.prefix+"-src", "shared", "DeliveryRolledBack", "every clone gets revision 1 again")
	require.NotContains(t, f.heldBy(f.name(2)), "bad")
	f.HasMetric(h, 1, "headwater_delivery_failures_total", map[string]string{"rule": "failing"})

	sources := func(verdict delivery.Verdict) {
		f.HasMetric(h, 1, "headwater_delivery_sources", map[string]string{"rule": "failing", "verdict": string(verdict)})
	}
	sources(delivery.Rejected)
	allow()
	f.edit("v")
	sources(delivery.Delivered)
	f.edit("bad")
	sources(delivery.Rejected)
	f.Settled(h)
	f.have("v", "v", "v", "v")
	require.Len(t, f.revisions(), 2, "neither the stable nor the rejected content is recorded twice")

	f.steer(f.approver(), "retry")
	f.have("bad", "bad", "bad", "bad")
	f.verdict(2, delivery.Delivered)
}

// Invariant D6.
func TestNewAndRepairedClonesGetTheRevisionOfTheirStage(t *testing.T) {
	f := newStaged(t, "repaired", waitsForApproval, "")
	f.StartAlone(f.rules)
	f.have("v", "v", "v", "v")
	f.verdict(1, delivery.Delivered)
	f.edit("w")
	f.have("w", "w", "v", "v")

	f.Namespace("repaired-new", "fleet=repaired")
	f.HasClone("repaired-new", "shared", map[string]string{"k": "v"})
	for i, value := range []string{"w", "w", "v", "v"} {
		if i%2 == 0 {
			f.SetKey(f.name(i), "shared", "k", "drift")
		} else {
			require.NoError(t, f.Admin.CoreV1().Secrets(f.name(i)).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
		}
		f.HasClone(f.name(i), "shared", map[string]string{"k": value})
	}
	require.NotContains(t, f.heldBy("repaired-new"), "w")
}

// Invariant D3.
func TestADeliveryGoesOnAfterAKill(t *testing.T) {
	f := newStaged(t, "killed", ", soak: 3s", "")
	h := f.StartAlone(f.rules)
	f.have("v", "v", "v", "v")
	f.verdict(1, delivery.Delivered)
	f.edit("w")
	f.have("w", "w", "v", "v")
	h.Kill()
	h = f.StartAlone(f.rules)
	f.have("w", "w", "w", "w")
	f.verdict(2, delivery.Delivered)

	h.Kill()
	f.edit("x") // nobody sees it
	f.StartAlone(f.rules)
	f.verdict(3, delivery.Delivered)
	f.have("x", "x", "x", "x")
}

// Invariant D8.
func TestEditsDuringADeliveryStartAgainAndOldRevisionsGo(t *testing.T) {
	f := newStaged(t, "often", waitsForApproval, "")
	h := f.StartAlone(f.rules)
	f.have("v", "v", "v", "v")
	f.verdict(1, delivery.Delivered)
	for number, value := range []string{"a", "b", "c", "d"} {
		f.edit(value)
		f.have(value, value, "v", "v")
		f.verdict(number+2, delivery.Delivering)
	}
	f.Settled(h)
	require.Len(t, f.revisions(), 3)

	f.edit("v") // back to what is stable: nothing new
	f.have("v", "v", "v", "v")
	f.verdict(5, delivery.Superseded)
	require.Len(t, f.revisions(), 3)
}

func TestARollbackToAnOlderRevisionLastsUntilTheNextEdit(t *testing.T) {
	f := newStaged(t, "back", "", "")
	user := f.approver()
	f.StartAlone(f.rules)
	f.have("v", "v", "v", "v")
	f.verdict(1, delivery.Delivered)
	f.edit("w")
	f.verdict(2, delivery.Delivered)
	f.have("w", "w", "w", "w")

	f.steer(user, "rollback", "--to", "1")
	f.have("v", "v", "v", "v")
	f.steer(user, "resume")
	f.have("w", "w", "w", "w")
	f.steer(user, "rollback", "--to", "1")
	f.have("v", "v", "v", "v")
	f.edit("x")
	f.have("x", "x", "x", "x")
	out, _, exit := f.Command(user, "diff", f.prefix, "1", "3", "--config", f.file())
	require.Zero(t, exit)
	require.Contains(t, out, "Changed  k")
}

// A rule without a delivery can keep revisions as well. Its clones follow the source.
func TestAHistoryWithoutADeliveryIsForRollbacks(t *testing.T) {
	f := newFleet(newEnv(t), "reverted", 2, "")
	user := f.approver()
	f.StartAlone(f.rule("namespaces: {selector: {matchLabels: {fleet: reverted}}}, history: 2"))
	f.have("v", "v")
	f.verdict(1, delivery.Delivered)
	f.edit("w")
	f.have("w", "w")
	f.verdict(2, delivery.Delivered)
	require.NotContains(t, f.Get(f.name(0), "shared").Annotations, mark.Revision)
	f.steer(user, "rollback", "--to", "1")
	f.have("v", "v")
	f.steer(user, "resume")
	f.have("w", "w")

	f.ConfigFile(f.rule("namespaces: {selector: {matchLabels: {fleet: reverted}}}"))
	f.Eventually(func(context.Context) error {
		if left := len(f.revisions()); left > 0 {
			return fmt.Errorf("%d revisions are left", left)
		}
		return nil
	})
}
