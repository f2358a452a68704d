package sync

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/inspect/reported"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
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
	if !strings.Contains(stage, "soak") {
		stage += ", soak: 0s"
	}
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
	all := lab.List(f, f.Admin.CoreV1().Secrets(lab.Namespace).List, metav1.ListOptions{LabelSelector: mark.Revision + "," + mark.Rule + "=" + f.prefix})
	return all.Items
}

// verdict waits until the revision with that number has the verdict.
func (f *fleet) verdict(number int, want revisions.Verdict) {
	f.Helper()
	f.Verdict(f.prefix, fmt.Sprint(number), want)
}

// delivered waits until every stage has the value of the revision with that number.
func (f *fleet) delivered(number int, value string) {
	f.Helper()
	f.have(value, value, value, value)
	f.verdict(number, revisions.Delivered)
}

// heldBy returns every value that the clone of a namespace ever had.
func (f *fleet) heldBy(namespace string) map[string]bool {
	f.Helper()
	return f.HeldBy(namespace, "shared", "k")
}

func (f *fleet) file() string { return filepath.Join(f.Dir, "headwater.yaml") }

// steer runs a command about the delivery.
func (f *fleet) steer(user, verb string, args ...string) {
	f.Helper()
	f.Reported(f.prefix)
	_, stderr, exit := f.Command(user, append([]string{verb, f.prefix}, args...)...)
	require.Zero(f, exit, stderr)
}

// refuse makes the API server refuse updates of Secrets in one namespace, as
// somebody else's policy would, until allow is called.
func (f *fleet) refuse(namespace string) (allow func()) {
	f.Helper()
	allow = f.Policy(metav1.ObjectMeta{Name: "refuse-" + namespace}, admissionregistrationv1.Update, "", "secrets", fmt.Sprintf("request.namespace != %q", namespace))
	f.Eventually(func(ctx context.Context) error {
		clone := f.Get(namespace, "shared")
		clone.Data["k"] = []byte("refused?")
		_, err := f.Admin.CoreV1().Secrets(namespace).Update(ctx, clone, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return lab.ErrorIf(err == nil || !strings.Contains(err.Error(), "refused by the test"), "updates in %s are not refused yet: %v", namespace, err)
	})
	return allow
}

// Invariants D1 and D4.
func TestARevisionReachesALaterStageOnlyWhenItsTimeComes(t *testing.T) {
	f := newStaged(t, "staged", waitsForApproval, "")
	user := f.approver()
	h := f.StartAlone(f.rules)
	f.delivered(1, "v")

	f.edit("w")
	f.have("w", "w", "v", "v")
	f.verdict(2, revisions.Delivering)
	f.HasNote(f.prefix+"-src", "shared", "DeliveryStarted", "revision 2 starts with stage canary")
	f.Settled(h)
	before := f.Cluster.Mark()
	f.Stays(f.NoWrites(before))
	f.HasMetric(h, 1, "headwater_delivery_sources", map[string]string{"rule": "staged", "verdict": "Delivering"})
	require.Contains(t, f.heldBy(f.name(0)), "w")
	require.NotContains(t, f.heldBy(f.name(2)), "w")
	require.NotContains(t, f.heldBy(f.name(3)), "w")

	var history reported.History
	f.Reported("staged")
	f.Eventually(func(context.Context) error { // clones are counted later
		f.Answers(user, &history, "history", "staged")
		newest := history.Sources[0].Revisions[0]
		return lab.ErrorIf(newest.Clones != 2 || newest.Stage != "canary", "%+v", newest)
	})
	f.steer(user, "promote")
	f.delivered(2, "w")
	f.HasNote(f.prefix+"-src", "shared", "Delivered", "revision 2 passed every stage")
	secrets, err := f.Cluster.Since(t.Context(), before, func(r cluster.Request) bool { return r.User == user && r.Resource == "secrets" })
	require.NoError(t, err)
	require.Empty(t, secrets, "who steers a delivery reads no Secret")
}

// Invariants D2 and D5.
func TestARevisionThatFailsIsTakenBackAndStaysRejected(t *testing.T) {
	f := newStaged(t, "failing", "", ", gate: {timeout: 5s}")
	user := f.approver()
	h := f.StartAlone(f.rules)
	f.delivered(1, "v")
	allow := f.refuse(f.name(1))
	f.edit("bad")
	f.HasClone(f.name(0), "shared", map[string]string{"k": "bad"})
	f.steer(user, "rollback")
	f.verdict(2, revisions.Rejected)
	f.have("v", "v", "v", "v")
	require.NotContains(t, f.heldBy(f.name(2)), "bad")

	sources := func(verdict revisions.Verdict) {
		f.HasMetric(h, 1, "headwater_delivery_sources", map[string]string{"rule": "failing", "verdict": string(verdict)})
	}
	sources(revisions.Rejected)
	allow()
	f.edit("v")
	sources(revisions.Delivered)
	f.edit("bad")
	sources(revisions.Rejected)
	f.Settled(h)
	f.have("v", "v", "v", "v")
	require.Len(t, f.revisions(), 2, "neither the stable nor the rejected content is recorded twice")

	f.steer(user, "retry")
	f.have("bad", "bad", "bad", "bad")
	f.verdict(2, revisions.Delivered)
}

// Invariant D6.
func TestNewAndRepairedClonesGetTheRevisionOfTheirStage(t *testing.T) {
	f := newStaged(t, "repaired", waitsForApproval, "")
	f.StartAlone(f.rules)
	f.delivered(1, "v")
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
	f := newStaged(t, "killed", ", soak: 1h", "")
	soaks := strings.Replace(f.rules, "soak: 1h", "soak: 1s", 1)
	h := f.StartAlone(f.rules)
	f.delivered(1, "v")
	f.edit("w")
	f.have("w", "w", "v", "v")
	h.Kill()
	h = f.StartAlone(soaks)
	f.delivered(2, "w")

	h.Kill()
	f.edit("x") // nobody sees it
	f.StartAlone(soaks)
	f.delivered(3, "x")
}

// Invariant D8.
func TestEditsDuringADeliveryStartAgainAndOldRevisionsGo(t *testing.T) {
	f := newStaged(t, "often", waitsForApproval, "")
	h := f.StartAlone(f.rules)
	f.delivered(1, "v")
	for number, value := range []string{"a", "b", "c", "d"} {
		f.edit(value)
		f.have(value, value, "v", "v")
		f.verdict(number+2, revisions.Delivering)
	}
	f.Settled(h)
	require.Len(t, f.revisions(), 3)

	f.edit("v") // back to what is stable: nothing new
	f.have("v", "v", "v", "v")
	f.verdict(5, revisions.Superseded)
	require.Len(t, f.revisions(), 3)
}

func TestARollbackToAnOlderRevisionLastsUntilTheNextEdit(t *testing.T) {
	f := newStaged(t, "back", "", "")
	user := f.approver()
	f.StartAlone(f.rules)
	f.delivered(1, "v")
	f.edit("w")
	f.delivered(2, "w")

	f.steer(user, "rollback", "--to", "1", "--yes")
	f.have("v", "v", "v", "v")
	f.steer(user, "resume")
	f.have("w", "w", "w", "w")
	f.steer(user, "rollback", "--to", "1", "--yes")
	f.have("v", "v", "v", "v")
	f.edit("x")
	f.have("x", "x", "x", "x")
	out, _, exit := f.Command(f.Viewer(user+"-viewer"), "diff", f.prefix, "1", "3", "--config", f.file())
	require.Zero(t, exit)
	require.Contains(t, out, "Changed  k")
}

// A rule without a delivery can keep revisions as well. Its clones follow the source.
func TestAHistoryWithoutADeliveryIsForRollbacks(t *testing.T) {
	f := newFleet(newEnv(t), "reverted", 2, "")
	user := f.approver()
	f.StartAlone(f.rule("namespaces: {selector: {matchLabels: {fleet: reverted}}}, history: 2"))
	f.have("v", "v")
	f.verdict(1, revisions.Delivered)
	f.edit("w")
	f.have("w", "w")
	f.verdict(2, revisions.Delivered)
	require.NotContains(t, f.Get(f.name(0), "shared").Annotations, mark.Revision)
	f.steer(user, "rollback", "--to", "1", "--yes")
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
