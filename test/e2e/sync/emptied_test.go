package sync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// approves waits until the RuleStatus says that the fleet's source is emptied, and approves that.
func (f *fleet) approves(user string) {
	f.Helper()
	f.Eventually(func(context.Context) error { // its RuleStatus says so
		_, problem, exit := f.Command(user, "approve", f.prefix)
		return lab.ErrorIf(exit != 0, "%s", problem)
	})
}

// hasNo is a condition for Stays: that there is no clone in namespace.
func (f *fleet) hasNo(namespace string) func(context.Context) error {
	return func(context.Context) error {
		return lab.ErrorIf(f.Get(namespace, "shared") != nil, "there is a clone in %s", namespace)
	}
}

// keep is a condition for Stays: that the first n clones have this value.
func (f *fleet) keep(n int, value string) func(context.Context) error {
	return func(context.Context) error {
		for i := range n {
			if err := lab.SameData(f.Get(f.name(i), "shared"), map[string]string{"k": value}); err != nil {
				return fmt.Errorf("%s: %w", f.name(i), err)
			}
		}
		return nil
	}
}

// Invariant 5.
func TestASourceWithoutAValueIsHeldAndWritesNothing(t *testing.T) {
	for sentence, test := range map[string]struct {
		prefix string
		edit   func(*corev1.Secret)
	}{
		"every value is empty": {"blank", func(s *corev1.Secret) {
			for key := range s.Data {
				s.Data[key] = nil
			}
		}},
		"no key is left": {"keyless", func(s *corev1.Secret) { s.Data = nil }},
		"every value that is cloned is empty": {"unpicked", func(s *corev1.Secret) {
			s.Data["k"], s.Data["other"] = nil, []byte("value")
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			sync := ""
			if test.prefix == "unpicked" {
				sync = "target: {keys: [{from: k}]}"
			}
			f := newFleet(newEnv(t), test.prefix, 3, sync)
			h := f.StartAlone(f.rules)
			f.allHave("v")
			f.Settled(h)
			f.Edit(test.prefix+"-src", "shared", test.edit)
			require.Contains(t, f.HasEvent(test.prefix+"-src", "shared", "SourceEmptied"), "headwater approve "+test.prefix)

			require.NoError(t, f.Admin.CoreV1().Secrets(f.name(2)).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
			f.Namespace(test.prefix+"-new", "fleet="+test.prefix)
			f.HasMetric(h, 4, "headwater_sync_clones", map[string]string{"rule": test.prefix, "state": "held"})
			f.Stays(f.keep(2, "v"))
			f.Stays(f.hasNo(f.name(2)))
			f.Stays(f.hasNo(test.prefix + "-new"))

			h.Kill()
			h = f.StartAlone(f.rules)
			f.HasMetric(h, 4, "headwater_sync_clones", map[string]string{"rule": test.prefix, "state": "held"})
			f.Stays(f.keep(2, "v"))

			f.Edit(test.prefix+"-src", "shared", func(s *corev1.Secret) { s.Data = map[string][]byte{"k": []byte("w")} })
			f.allHave("w")
			f.HasClone(test.prefix+"-new", "shared", map[string]string{"k": "w"})
		})
	}
}

func TestATypedSecretWaitsForTheValuesOfItsKeys(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("typed-empty-src", "typed-empty-a")
	e.RuleStatuses()
	types := map[string]struct {
		secretType corev1.SecretType
		born, then map[string]string
	}{
		"certificate": {corev1.SecretTypeTLS, map[string]string{"tls.crt": "", "tls.key": "k"}, map[string]string{"tls.crt": "c", "tls.key": "k"}},
		"login":       {corev1.SecretTypeBasicAuth, map[string]string{"username": "", "realm": "r"}, map[string]string{"username": "u", "realm": "r"}},
	}
	rules := ""
	for name, one := range types {
		born := lab.Secret("typed-empty-src", name, one.born)
		born.Type = one.secretType
		e.Create("typed-empty-src", born)
		rules += fmt.Sprintf("- name: typed-%s\n  source: {kind: Secret, namespace: typed-empty-src, name: %s}\n  sync: {namespaces: {include: [typed-empty-a]}}\n", name, name)
	}
	e.Start(rules)
	for name, one := range types {
		note := e.HasEvent("typed-empty-src", name, "SourceEmptied")
		require.Contains(t, note, string(one.secretType))
		e.Stays(func(context.Context) error {
			return lab.ErrorIf(e.Get("typed-empty-a", name) != nil, "%s has a clone", name)
		})
		e.Edit("typed-empty-src", name, func(s *corev1.Secret) {
			for key, value := range one.then {
				s.Data[key] = []byte(value)
			}
		})
		e.HasClone("typed-empty-a", name, one.then)
	}
}

func TestOneEmptyValueAmongOthersGoesOn(t *testing.T) {
	f := newFleet(newEnv(t), "partly", 2, "")
	f.Start(f.rules)
	f.allHave("v")
	f.Edit("partly-src", "shared", func(s *corev1.Secret) { s.Data = map[string][]byte{"k": nil, "more": []byte("m")} })
	for i := range f.n {
		f.HasClone(f.name(i), "shared", map[string]string{"k": "", "more": "m"})
	}
}

// A marker has no value, and is held once.
func TestAnApprovalIsForWhatTheSourceHas(t *testing.T) {
	f := newFleet(newEnv(t), "marker", 3, "")
	f.rules += newFleet(f.env, "beside", 2, "").rules // clones of the same name, in other namespaces
	empty := map[string]string{"k": ""}
	f.Edit("marker-src", "shared", func(s *corev1.Secret) { s.Data = map[string][]byte{"k": nil} })
	h := f.StartAlone(f.rules)
	user := f.approver()
	f.Stays(f.hasNo(f.name(0)))
	f.approves(user)
	all := func() {
		t.Helper()
		for i := range f.n {
			f.HasClone(f.name(i), "shared", empty)
		}
	}
	all()

	f.Edit("marker-src", "shared", func(s *corev1.Secret) { s.Labels = map[string]string{"a": "b"} })
	f.Settled(h)
	f.Namespace("marker-new", "fleet=marker")
	f.HasClone("marker-new", "shared", empty)
	require.NoError(t, f.Admin.CoreV1().Secrets(f.name(0)).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	all()

	// What every clone has needs no approval, as of an object that an earlier build cloned.
	h.Stop()
	forget := []byte(`{"data":null}`)
	_, err := f.Admin.CoreV1().ConfigMaps(lab.Namespace).Patch(t.Context(), "headwater-approvals", types.MergePatchType, forget, metav1.PatchOptions{})
	require.NoError(t, err)
	h = f.StartAlone(f.rules)
	lab.Until(f, f.Admin.CoreV1().ConfigMaps(lab.Namespace).Get, "headwater-approvals", func(stored *corev1.ConfigMap) error {
		return lab.ErrorIf(stored.Data["marker"] == "", "it is not approved yet")
	})
	require.NoError(t, f.Admin.CoreV1().Secrets(f.name(1)).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	f.Edit(f.name(2), "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("theirs") })
	all()
	f.Namespace("marker-newer", "fleet=marker")
	f.HasClone("marker-newer", "shared", empty)

	// Other content that has no value needs its own.
	f.Edit("marker-src", "shared", func(s *corev1.Secret) { s.Data = map[string][]byte{"other": nil} })
	f.HasMetric(h, 5, "headwater_sync_clones", map[string]string{"rule": "marker", "state": "held"})
	all()
}

func TestANamespaceThatEmptiesItsCloneEndsNoHold(t *testing.T) {
	f := newFleet(newEnv(t), "insider", 3, "")
	h := f.Start(f.rules)
	f.allHave("v")
	f.Edit("insider-src", "shared", func(s *corev1.Secret) { s.Data["k"] = nil })
	f.HasMetric(h, 3, "headwater_sync_clones", map[string]string{"rule": "insider", "state": "held"})
	f.Edit(f.name(2), "shared", func(s *corev1.Secret) { s.Data["k"] = nil })
	f.Stays(f.keep(2, "v"))
	f.HasMetric(h, 2, "headwater_sync_clones", map[string]string{"rule": "insider", "state": "held"})
}

func TestWhileASourceIsEmptiedNewClonesGetWhatWasDelivered(t *testing.T) {
	for sentence, start := range map[string]func(*testing.T) *fleet{
		"of a rule that keeps history": func(t *testing.T) *fleet { return newFleet(newEnv(t), "blankkept", 2, "history: 3") },
		"of a delivery":                func(t *testing.T) *fleet { return newStaged(t, "blankstaged", "", "") },
	} {
		t.Run(sentence, func(t *testing.T) {
			f := start(t)
			h := f.StartAlone(f.rules)
			f.allHave("v")
			f.verdict(1, revisions.Delivered)
			f.edit("w")
			f.allHave("w")
			f.verdict(2, revisions.Delivered)
			f.edit("")
			f.verdict(3, revisions.Held)
			require.Contains(t, f.HasEvent(f.prefix+"-src", "shared", "DeliveryHeld"), "headwater approve "+f.prefix)
			f.Namespace(f.prefix+"-new", "fleet="+f.prefix)
			f.HasClone(f.prefix+"-new", "shared", map[string]string{"k": "w"})
			require.NoError(t, f.Admin.CoreV1().Secrets(f.name(0)).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
			f.Edit(f.name(1), "shared", func(s *corev1.Secret) { s.Data["k"] = nil })
			f.allHave("w")
			f.Settled(h)
			f.Stays(f.keep(f.n, "w"))
			user := f.approver()
			f.Eventually(func(context.Context) error { // its RuleStatus may come later, if the kind was just installed
				_, problem, exit := f.Command(user, "retry", f.prefix)
				return lab.ErrorIf(exit == 0 || !strings.Contains(problem, "headwater approve "+f.prefix), "%s", problem)
			})

			f.approves(user)
			f.allHave("")
			f.verdict(3, revisions.Delivered)
		})
	}
}

func TestADeliveryStopsWhereItIsWhenItsSourceIsEmptied(t *testing.T) {
	f := newStaged(t, "blankmid", waitsForApproval, "")
	f.StartAlone(f.rules)
	f.allHave("v")
	f.edit("w")
	f.have("w", "w", "v", "v")
	f.edit("")
	f.verdict(3, revisions.Held)
	f.Namespace("blankmid-new", "fleet=blankmid")
	f.HasClone("blankmid-new", "shared", map[string]string{"k": "v"})
	f.have("w", "w", "v", "v")
	f.edit("x")
	f.have("x", "x", "v", "v")
}

// A namespace may write its own clone, and marks in objects of its own.
func TestNoSingleNamespaceApprovesAnEmptiedSource(t *testing.T) {
	e := newEnv(t)
	f, placeholder, theirs := newFleet(e, "tenant", 3, ""), newFleet(e, "placeholder", 2, ""), newFleet(e, "owned", 2, "onConflict: Overwrite")
	h := f.StartAlone(f.rules + theirs.rules)
	f.allHave("v")
	theirs.allHave("v")
	theirs.edit("")
	f.HasMetric(h, 2, "headwater_sync_clones", map[string]string{"rule": "owned", "state": "held"})
	require.NoError(t, e.Admin.CoreV1().Secrets(theirs.name(1)).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.Create(theirs.name(1), lab.Secret(theirs.name(1), "shared", map[string]string{"k": "theirs"}))
	theirs.Edit(theirs.name(0), "shared", func(s *corev1.Secret) { s.Data["k"] = nil })
	f.edit("")
	f.HasMetric(h, 3, "headwater_sync_clones", map[string]string{"rule": "tenant", "state": "held"})
	f.Edit(f.name(2), "shared", func(s *corev1.Secret) { s.Data["k"] = nil })
	f.HasMetric(h, 2, "headwater_sync_clones", map[string]string{"rule": "tenant", "state": "held"})
	h.Stop()

	placeholder.edit("")
	forged := f.Get(f.name(2), "shared").DeepCopy()
	forged.ObjectMeta = metav1.ObjectMeta{Name: "shared", Namespace: placeholder.name(1), Labels: forged.Labels, Annotations: forged.Annotations}
	forged.Annotations[mark.Rule] = "placeholder"
	forged.Annotations[mark.Source] = strings.ReplaceAll(forged.Annotations[mark.Source], "tenant-src", "placeholder-src")
	forged.Annotations = mark.WithPlace(forged.Annotations, forged)
	e.Create(placeholder.name(1), forged)

	renamed := strings.Replace(f.rules, "- name: tenant\n", "- name: renamed\n", 1)
	h = e.StartAlone(renamed + placeholder.rules + theirs.rules)
	e.HasMetric(h, 2, "headwater_sync_clones", map[string]string{"rule": "renamed", "state": "held"})
	e.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "placeholder", "state": "held"})
	lost := func(ctx context.Context) error {
		return errors.Join(f.keep(2, "v")(ctx), placeholder.hasNo(placeholder.name(0))(ctx), lab.SameData(e.Get(theirs.name(1), "shared"), map[string]string{"k": "theirs"}))
	}
	e.Holds(8*time.Second, lost) // what nobody lacks is approved after 5 s
}

func TestAnApprovalEndsWithTheValueThatComesAfterIt(t *testing.T) {
	for sentence, sync := range map[string]string{"of a rule": "", "of a rule that keeps history": "history: 4"} {
		t.Run(sentence, func(t *testing.T) {
			f := newFleet(newEnv(t), "outlived"+strings.TrimSuffix(sync, ": 4"), 2, sync)
			h := f.StartAlone(f.rules)
			user := f.approver()
			has := func(value string, revision int) { // a revision is recorded beside the cloning
				f.allHave(value)
				if sync != "" {
					f.verdict(revision, revisions.Delivered)
				}
			}
			has("v", 1)
			f.edit("")
			f.approves(user)
			has("", 2)
			f.edit("w")
			has("w", 3)
			h.Kill() // before anything is withdrawn that need not be
			f.edit("")
			h = f.StartAlone(f.rules)
			if sync == "" {
				f.HasMetric(h, 2, "headwater_sync_clones", map[string]string{"rule": f.prefix, "state": "held"})
			} else {
				f.verdict(4, revisions.Held)
			}
			f.Stays(f.keep(2, "w"))
		})
	}
}

func TestNoRequestDeliversAnEmptiedRevision(t *testing.T) {
	f := newStaged(t, "roundabout", "", "")
	f.StartAlone(f.rules)
	user := f.approver()
	f.allHave("v")
	f.edit("")
	f.verdict(2, revisions.Held)
	f.Eventually(func(context.Context) error { // its RuleStatus may come later, if the kind was just installed
		_, problem, exit := f.Command(user, "rollback", "roundabout")
		return lab.ErrorIf(exit != 0, "%s", problem)
	})
	f.verdict(2, revisions.Rejected)
	_, problem, exit := f.Command(user, "retry", "roundabout")
	require.NotZero(t, exit)
	require.Contains(t, problem, "headwater approve roundabout")
	f.Stays(f.keep(4, "v"))
	f.approves(user)
	f.Eventually(func(context.Context) error {
		_, problem, exit := f.Command(user, "retry", "roundabout")
		return lab.ErrorIf(exit != 0, "%s", problem)
	})
	f.allHave("")
}

func TestOtherKeysOfARuleCountAsTheyAreNow(t *testing.T) {
	f := newStaged(t, "rekeyed", "", "")
	f.Edit("rekeyed-src", "shared", func(s *corev1.Secret) { s.Data = map[string][]byte{"k": []byte("v"), "other": nil} })
	keys := func(from string) string {
		return strings.Replace(f.rules, "history: 3", "history: 3, target: {keys: [{from: "+from+", to: k}]}", 1)
	}
	h := f.StartAlone(keys("k"))
	f.allHave("v")
	f.verdict(1, revisions.Delivered)
	h.Stop()
	t.Log("what the rule clones now has no value")
	h = f.StartAlone(keys("other"))
	f.HasMetric(h, 4, "headwater_sync_clones", map[string]string{"rule": "rekeyed", "state": "held"})
	f.Stays(f.keep(4, "v"))
	f.Edit("rekeyed-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("w") })
	f.verdict(2, revisions.Held)
	h.Stop()
	t.Log("what it clones then has one")
	f.StartAlone(keys("k"))
	f.allHave("w")
	f.verdict(2, revisions.Delivered)
}

// What was approved under one name of a key counts under another once that is approved.
func TestARollbackRestoresAnEmptiedRevisionThatWasApproved(t *testing.T) {
	f := newStaged(t, "restored", waitsForApproval, "")
	h := f.StartAlone(f.rules)
	user := f.approver()
	f.allHave("v")
	f.edit("")
	f.verdict(2, revisions.Held)
	f.approves(user)
	f.Eventually(func(context.Context) error {
		_, problem, exit := f.Command(user, "promote", "restored", "--all")
		return lab.ErrorIf(exit != 0, "%s", problem)
	})
	f.allHave("")
	f.verdict(2, revisions.Delivered)
	h.Stop()
	f.StartAlone(strings.Replace(f.rules, "history: 3", "history: 3, target: {keys: [{from: k, to: renamed}]}", 1))
	f.approves(user)
	have := func(values ...string) {
		t.Helper()
		for i, value := range values {
			f.HasClone(f.name(i), "shared", map[string]string{"renamed": value})
		}
	}
	have("", "", "", "")
	f.edit("w")
	have("w", "w", "", "")
	_, problem, exit := f.Command(user, "rollback", "restored")
	require.Zero(t, exit, problem)
	have("", "", "", "")
}

func TestAnEmptiedSourceReplacesNoOther(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("successor-src", "successor-0", "successor-1", "successor-2")
	labels := map[string]string{"share": "successor"}
	first := lab.Secret("successor-src", "first", map[string]string{"k": "v"})
	first.Labels = labels
	e.Create("successor-src", first)
	h := e.Start(`
- name: successor
  source: {kind: Secret, namespace: successor-src, selector: {matchLabels: {share: successor}}}
  sync: {namespaces: {include: [successor-0, successor-1, successor-2]}, onSourceDeleted: Delete}
`)
	e.HasClone("successor-0", "first", map[string]string{"k": "v"})
	e.apart("successor-0", "first")
	next := lab.Secret("successor-src", "second", map[string]string{"username": "", "realm": "r"})
	next.Type, next.Labels = corev1.SecretTypeBasicAuth, labels
	e.Create("successor-src", next)
	e.HasEvent("successor-src", "second", "SourceEmptied")
	require.NoError(t, e.Admin.CoreV1().Secrets("successor-src").Delete(t.Context(), "first", metav1.DeleteOptions{}))
	e.HasMetric(h, 3, "headwater_sync_clones", map[string]string{"rule": "successor", "state": "held", "reason": "MassRemoval"})
	e.Stays(func(context.Context) error {
		return lab.SameData(e.Get("successor-0", "first"), map[string]string{"k": "v"})
	})
}
