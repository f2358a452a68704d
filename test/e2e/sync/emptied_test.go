package sync

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
			_, problem, exit := f.Command(user, "retry", f.prefix)
			require.NotZero(t, exit)
			require.Contains(t, problem, "headwater approve "+f.prefix)

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
