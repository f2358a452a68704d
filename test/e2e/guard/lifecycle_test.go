package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/test/lab"
)

const inStages = `
- name: life
  source: {kind: Secret, namespace: life-src, name: shared}
  sync:
    namespaces: {include: ["life-*"]}
    delivery: {stages: [{name: canary, percent: 50, soak: 0s}]}
  protect: {}
`

func (e *env) life() {
	e.Helper()
	e.Namespaces("life-src", "life-a", "life-b")
	e.Secret("life-src", "shared", map[string]string{"k": "1"})
}

func (e *env) reaches(value string) {
	e.Helper()
	for _, namespace := range []string{"life-a", "life-b"} {
		e.HasClone(namespace, "shared", map[string]string{"k": value})
	}
}

func (e *env) set(value string) {
	e.Helper()
	e.Edit("life-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte(value) })
}

// With both policies, Headwater does all that it does, by the token of its account:
// revisions, stages, records, registration and verification.
func TestHeadwaterWorksWithinItsPolicies(t *testing.T) {
	e := newEnv(t)
	e.life()
	h := e.byItsToken(inStages)
	e.reaches("1")
	e.set("2")
	e.reaches("2")
	e.HasMetric(h, 1, "headwater_protection_proven", map[string]string{"rule": "life"})
	require.NoError(t, e.notRefused(h))
}

// notRefused is nil unless a static policy refused a write of Headwater's.
func (e *env) notRefused(h *lab.Headwater) error {
	log, err := h.Log()
	if err != nil {
		return err
	}
	for _, policy := range []string{spec.GuardName, spec.LimitName} {
		if strings.Contains(log, "olicy '"+policy+"'") {
			return fmt.Errorf("%s refused a write:\n%s", policy, log)
		}
	}
	return nil
}

// before is a checkout of the version before with its binary, which .ci/night makes; else
// this one.
func before(t *testing.T) (checkout string) {
	t.Helper()
	if checkout = os.Getenv("HEADWATER_BEFORE"); checkout == "" {
		return lab.Root(t)
	}
	return checkout
}

// An upgrade finds what an installation without the policies has written, and an old
// replica that still runs goes on.
func TestTheUpgradeFromAnInstallationWithoutThePolicies(t *testing.T) {
	e := newEnv(t)
	e.life()
	require.NoError(t, lab.Install(t.Context(), e.Cluster.Config(), filepath.Join(before(t), "deploy", "rbac.yaml")))
	registration := e.Admin.AdmissionregistrationV1()
	for _, name := range []string{spec.GuardName, spec.LimitName} {
		e.unbind(name)
		require.NoError(t, registration.ValidatingAdmissionPolicies().Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	earlier := e.byItsTokenWith(filepath.Join(before(t), "bin", "headwater"), inStages)
	e.reaches("1")
	e.apply()
	e.inForce()
	e.set("2")
	e.reaches("2")
	earlier.Stop()
	h := e.byItsToken(inStages)
	e.set("3")
	e.reaches("3")
	require.NoError(t, e.notRefused(h))
}

// A service account that was deleted and recreated, or restored from a backup, has
// another UID, and is Headwater.
func TestARecreatedAccountIsHeadwater(t *testing.T) {
	e := newEnv(t)
	e.life()
	earlier := e.byItsToken(inStages)
	e.reaches("1")
	earlier.Stop()
	accounts := e.Admin.CoreV1().ServiceAccounts(own)
	before := lab.Read(t, accounts.Get, account)
	require.NoError(t, accounts.Delete(t.Context(), account, metav1.DeleteOptions{}))
	e.apply()
	after := lab.Read(t, accounts.Get, account)
	require.NotEqual(t, before.UID, after.UID)
	h := e.byItsToken(inStages)
	e.set("2")
	e.reaches("2")
	require.NoError(t, e.notRefused(h))
}

// Break-glass: who may delete the bindings is rid of both policies, and no replica
// puts them back.
func TestHeadwaterNeverRestoresTheStaticPolicies(t *testing.T) {
	e := newEnv(t)
	e.life()
	h := e.byItsToken(inStages)
	e.reaches("1")
	bindings := e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	headwater := e.ByToken(own, account).AdmissionregistrationV1()
	for _, name := range []string{spec.GuardName, spec.LimitName} {
		require.NotContains(t, manifests.PolicyNames(), name)
		require.True(t, apierrors.IsForbidden(headwater.ValidatingAdmissionPolicyBindings().Delete(t.Context(), name, metav1.DeleteOptions{})))
		require.True(t, apierrors.IsForbidden(headwater.ValidatingAdmissionPolicies().Delete(t.Context(), name, metav1.DeleteOptions{})))
		e.unbind(name)
	}
	e.set("2")
	e.reaches("2")
	e.Settled(h)
	for _, name := range []string{spec.GuardName, spec.LimitName} {
		_, err := bindings.Get(t.Context(), name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
	}
}

// Headwater's namespace is deleted like any other, with its records, revisions and pods.
func TestTheNamespaceIsDeletedByKubernetes(t *testing.T) {
	e := newEnv(t)
	e.life()
	h := e.byItsToken(inStages)
	e.running()
	e.reaches("1")
	h.Stop()
	namespaces := e.Admin.CoreV1().Namespaces()
	require.NoError(t, namespaces.Delete(t.Context(), own, metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(own).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items { // no kubelet runs that would end them
			if err := e.Admin.CoreV1().Pods(own).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0)); lab.IgnoreGone(err) != nil {
				return err
			}
		}
		if _, err = namespaces.Get(ctx, own, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the namespace is still there"), err)
	})
	e.apply()
	require.NoError(t, lab.SameData(e.Get("life-a", "shared"), map[string]string{"k": "1"}), "clones stay")
}
