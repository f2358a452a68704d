package sync

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/inspect/reported"
	"github.com/headwater-k8s/headwater/test/lab"
)

// fleet is a source and n namespaces PREFIX-0 … with its clone.
type fleet struct {
	*env
	prefix string
	n      int
	rules  string
}

func newFleet(e *env, prefix string, n int, sync string) *fleet {
	e.Helper()
	e.RuleStatuses()
	e.Namespace(prefix + "-src")
	e.Secret(prefix+"-src", "shared", map[string]string{"k": "v"})
	f := &fleet{env: e, prefix: prefix, n: n}
	for i := range n {
		e.Namespace(f.name(i), "keep=yes", "fleet="+prefix)
	}
	f.rules = f.rule(fmt.Sprintf("namespaces: {selector: {matchLabels: {fleet: %s}}}, %s", prefix, sync))
	return f
}

func (f *fleet) rule(sync string) string {
	return fmt.Sprintf("- name: %s\n  source: {kind: Secret, namespace: %s-src, name: shared}\n  sync: {%s}\n", f.prefix, f.prefix, sync)
}

func (f *fleet) name(i int) string { return fmt.Sprintf("%s-%d", f.prefix, i) }

func (f *fleet) allHave(value string) {
	f.Helper()
	for i := range f.n {
		f.HasClone(f.name(i), "shared", map[string]string{"k": value})
	}
}

// uids is a condition for holds: every clone is the object it was.
func (f *fleet) uids() func(context.Context) error {
	before := map[int]types.UID{}
	for i := range f.n {
		before[i] = f.Get(f.name(i), "shared").UID
	}
	return func(context.Context) error {
		for i := range f.n {
			if clone := f.Get(f.name(i), "shared"); clone == nil || clone.UID != before[i] {
				return fmt.Errorf("the clone in %s was removed", f.name(i))
			}
		}
		return nil
	}
}

func (f *fleet) approver() string {
	f.Helper()
	user := f.prefix + "-approver"
	require.NoError(f, lab.Bind(f.Context(), f.Admin, "headwater-view", user))
	for _, role := range requestConfigMaps {
		require.NoError(f, lab.BindIn(f.Context(), f.Admin, lab.Namespace, role, user))
	}
	return user
}

// wouldApprove waits until the RuleStatus says that so many removals are held.
func (f *fleet) wouldApprove(user string, removals int) {
	f.Helper()
	f.Eventually(func(context.Context) error {
		out, problem, _ := f.Command(user, "approve", f.prefix, "--dry-run")
		return lab.ErrorIf(out != fmt.Sprintf("would approve: removal of %d clones of rule %s\n", removals, f.prefix), "%s%s", out, problem)
	})
}

// usedUp waits until no approval of the fleet's rule is left.
func (f *fleet) usedUp() {
	f.Helper()
	f.Eventually(func(ctx context.Context) error {
		approvals, err := f.Admin.CoreV1().ConfigMaps(lab.Namespace).Get(ctx, "headwater-approvals", metav1.GetOptions{})
		return errors.Join(err, lab.ErrorIf(approvals.Data[f.prefix] != "", "still approved: %s", approvals.Data[f.prefix]))
	})
}

// Invariant 5.
func TestAMassRemovalIsHeldUntilItIsApproved(t *testing.T) {
	f := newFleet(newEnv(t), "mass", 6, "")
	h := f.StartAlone(f.rules)
	f.allHave("v")
	f.Settled(h) // of a clone that it has not seen, it counts no removal
	same := f.uids()
	f.ConfigFile(f.rule("namespaces: {include: [mass-0]}"))
	f.HasNote(lab.Namespace, lab.Namespace, "MassRemoval", "5 of the 6 clones of rule \"mass\"")
	f.HasNote("mass-src", "shared", "MassRemoval", "5 of the 6 clones of rule \"mass\"")
	f.HasMetric(h, 5, "headwater_sync_clones", map[string]string{"rule": "mass", "state": "held", "reason": "MassRemoval"})
	f.Stays(same)

	h.Kill()
	h = f.StartAlone(f.rule("namespaces: {include: [mass-0]}"))
	f.HasMetric(h, 5, "headwater_sync_clones", map[string]string{"rule": "mass", "state": "held", "reason": "MassRemoval"})
	f.Stays(same)

	user := f.approver()
	f.wouldApprove(user, 5)
	f.Stays(same)
	out, problem, exit := f.Command(user, "approve", "mass")
	require.Zero(t, exit, problem)
	require.Equal(t, "approved: removal of 5 clones of rule mass\n", out)
	for i := 1; i < f.n; i++ {
		f.HasNone(f.name(i), "shared")
	}
	f.HasClone(f.name(0), "shared", map[string]string{"k": "v"})
	f.HasNote(lab.Namespace, lab.Namespace, "Approved", `Headwater deletes 5 of the 6 clones of rule "mass": approved at 2`)
	f.HasNote(lab.Namespace, lab.Namespace, "Approved", `Z by user "mass-approver" (name not verified)`)
	f.usedUp()
	f.Eventually(func(context.Context) error { // the RuleStatus follows within seconds
		out, _, exit := f.Command(user, "approve", "mass", "--dry-run")
		return lab.ErrorIf(exit == 0, "%s", out)
	})
	_, problem, exit = f.Command(user, "approve", "mass")
	require.Equal(t, 1, exit)
	require.Contains(t, problem, `nothing of rule "mass" is held`)
	_, problem, exit = f.Command(user, "approve", "mas")
	require.Equal(t, 1, exit)
	require.Contains(t, problem, `rule "mas" has no RuleStatus`)
}

func TestAHeldRemovalEndsWithItsCause(t *testing.T) {
	f := newFleet(newEnv(t), "cause", 5, "onSourceDeleted: Delete")
	h := f.Start(f.rules)
	f.allHave("v")
	f.Settled(h)
	same := f.uids()
	require.NoError(t, f.Admin.CoreV1().Secrets("cause-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	f.HasMetric(h, 5, "headwater_sync_clones", map[string]string{"rule": "cause", "state": "held"})
	f.Stays(same)
	f.Secret("cause-src", "shared", map[string]string{"k": "v2"})
	f.allHave("v2")
	require.NoError(t, same(t.Context()), "updated, not recreated")
	f.HasMetric(h, 5, "headwater_sync_clones", map[string]string{"rule": "cause", "state": "current"})
}

// People relabel namespaces one at a time.
func TestRemovalsOneAfterTheOtherAreOneMassRemoval(t *testing.T) {
	f := newFleet(newEnv(t), "drip", 10, "")
	h := f.Start(f.rules)
	f.allHave("v")
	f.Settled(h)
	for i := range f.n {
		patch := []byte(`{"metadata":{"labels":{"fleet":null}}}`)
		_, err := f.Admin.CoreV1().Namespaces().Patch(t.Context(), f.name(i), types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	f.Eventually(func(ctx context.Context) error {
		held, err := h.Metric(ctx, "headwater_sync_clones", map[string]string{"rule": "drip", "state": "held"})
		return errors.Join(err, lab.ErrorIf(held < 7, "%v held", held))
	})
	f.Stays(func(context.Context) error {
		left := 0
		for i := range f.n {
			if f.Get(f.name(i), "shared") != nil {
				left++
			}
		}
		return lab.ErrorIf(left < 7, "only %d of 10 clones are left", left)
	})
}

func TestARemovedRuleDoesWithItsClonesWhatItSaid(t *testing.T) {
	for sentence, down := range map[string]string{"running": "", "while down": "down-"} {
		t.Run(sentence, func(t *testing.T) {
			e := newEnv(t)
			goes := newFleet(e, down+"goes", 2, "onRuleRemoved: Delete")
			stays := newFleet(e, down+"stays", 2, "")
			other := newFleet(e, down+"other", 1, "")
			h := e.StartAlone(goes.rules + stays.rules + other.rules)
			for _, f := range []*fleet{goes, stays, other} {
				f.allHave("v")
			}
			e.Settled(h)
			if down == "" {
				e.ConfigFile(other.rules)
			} else {
				h.Kill()
				e.StartAlone(other.rules)
			}
			for i := range goes.n {
				e.HasNone(goes.name(i), "shared")
			}
			for _, f := range []*fleet{stays, other} {
				e.Edit(f.prefix+"-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
			}
			other.allHave("v2")
			stays.allHave("v")
		})
	}
}

func TestAnEmptiedSourceIsPropagatedOnceApproved(t *testing.T) {
	f := newFleet(newEnv(t), "void", 3, "")
	f.Start(f.rules)
	f.allHave("v")
	f.Edit("void-src", "shared", func(s *corev1.Secret) { s.Data = nil })
	require.Contains(t, f.HasEvent("void-src", "shared", "SourceEmptied"), "headwater approve void")
	f.Stays(func(context.Context) error {
		return lab.SameData(f.Get(f.name(0), "shared"), map[string]string{"k": "v"})
	})
	var approved reported.Approved
	user := f.approver()
	f.Eventually(func(context.Context) error { // its RuleStatus says so
		_, problem, exit := f.Command(user, "approve", "void", "--dry-run")
		return lab.ErrorIf(exit != 0, "%s", problem)
	})
	f.Answers(user, &approved, "approve", "void")
	require.Equal(t, reported.Approved{Rule: "void", Emptied: []string{"Secret/void-src/shared"}}, approved)
	for i := range f.n {
		f.HasClone(f.name(i), "shared", map[string]string{})
	}
	require.Regexp(t, `^Headwater empties the clones of rule "void", like this source: approved at 2\S+Z by user "void-approver" \(name not verified\)$`,
		f.HasEvent("void-src", "shared", "Approved"))

	f.Edit("void-src", "shared", func(s *corev1.Secret) { s.Data = map[string][]byte{"k": []byte("v2")} })
	f.allHave("v2")
	f.usedUp()
}

func TestAChangeOfTypeLosesNoClone(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("retype-src", "retype-a", "retype-full", "retype-named")
	e.Policy(metav1.ObjectMeta{Name: "retype-named"}, admissionregistrationv1.Create, "", "secrets",
		`request.namespace != "retype-named" || !has(object.type) || object.type != "kubernetes.io/tls" || has(object.metadata.name) && object.metadata.name == "shared"`)
	e.Eventually(func(ctx context.Context) error { // it is in force
		probe := lab.Secret("retype-named", "probe", map[string]string{"tls.crt": "c", "tls.key": "k"})
		probe.Type = corev1.SecretTypeTLS
		_, err := e.Admin.CoreV1().Secrets("retype-named").Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return lab.ErrorIf(err == nil, "the policy allows every name")
	})
	data := map[string]string{"tls.crt": "c", "tls.key": "k"}
	e.Secret("retype-src", "shared", data)
	e.Start(`
- name: retype
  source: {kind: Secret, namespace: retype-src, name: shared}
  sync: {namespaces: {include: [retype-a, retype-full, retype-named]}}
- name: retype-public
  source: {kind: Secret, namespace: retype-src, name: shared}
  sync: {namespaces: {include: [retype-a]}, target: {name: public, keys: [{from: tls.crt, to: cert.pem}]}}
`)
	e.HasClone("retype-a", "shared", data)
	e.HasClone("retype-full", "shared", data)
	e.HasClone("retype-named", "shared", data)
	e.HasClone("retype-a", "public", map[string]string{"cert.pem": "c"})
	e.NoSecrets("retype-full")
	before := e.Get("retype-full", "shared")

	secrets := e.Admin.CoreV1().Secrets("retype-src")
	require.NoError(t, secrets.Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	data["tls.crt"] = "c2"
	source := lab.Secret("retype-src", "shared", data)
	source.Type = corev1.SecretTypeTLS
	_, err := secrets.Create(t.Context(), source, metav1.CreateOptions{})
	require.NoError(t, err)

	ofType := func(namespace, name string, want corev1.SecretType) {
		t.Helper()
		require.Equal(t, want, e.Get(namespace, name).Type)
	}
	e.HasClone("retype-a", "shared", data)
	ofType("retype-a", "shared", corev1.SecretTypeTLS)
	t.Log("a policy that allows some names is asked about the clone's own")
	e.HasClone("retype-named", "shared", data)
	ofType("retype-named", "shared", corev1.SecretTypeTLS)
	t.Log("a type that the clone's keys do not fulfil leaves the clone what it is")
	e.HasClone("retype-a", "public", map[string]string{"cert.pem": "c2"})
	ofType("retype-a", "public", corev1.SecretTypeOpaque)
	t.Log("a clone stays for as long as the one after it would be refused")
	failed := e.HasEvent("retype-full", "shared", "CloneFailed")
	require.Contains(t, failed, "exceeded quota")
	require.Contains(t, failed, "raise it or delete the object yourself")
	e.Stays(func(context.Context) error {
		if now := e.Get("retype-full", "shared"); now == nil || now.UID != before.UID {
			return fmt.Errorf("the clone is gone")
		}
		return nil
	})
	require.NoError(t, e.Admin.CoreV1().ResourceQuotas("retype-full").Delete(t.Context(), "none", metav1.DeleteOptions{}))
	e.HasClone("retype-full", "shared", data)
	ofType("retype-full", "shared", corev1.SecretTypeTLS)
}
