package sync

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestALeaderThatLosesItsLeaseReportsNoFailedClone(t *testing.T) {
	const clones, lease = 40, 15 * time.Second // which a slow machine renews, too
	e := ownCluster(t)
	e.Namespace("frozen-src")
	e.Secret("frozen-src", "shared", map[string]string{"k": "v"})
	for i := range clones {
		e.Namespace(fmt.Sprintf("frozen-%d", i), "frozen=yes")
	}
	o := e.Options("- name: frozen\n  source: {kind: Secret, namespace: frozen-src, name: shared}\n" +
		"  sync: {namespaces: {selector: {matchLabels: {frozen: \"yes\"}}}}\n")
	o.Args = []string{"--lease-duration", lease.String(), "--workers", "8"}
	proxy := e.Proxy(o)
	h := e.Launch(o)
	require.NoError(t, h.Ready(t.Context()))
	for i := range clones {
		e.HasClone(fmt.Sprintf("frozen-%d", i), "shared", map[string]string{"k": "v"})
	}
	e.Settled(h)

	proxy.Slow(time.Second / 4) // of the clones that change, most wait when it is suspended
	e.Edit("frozen-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	e.Eventually(func(ctx context.Context) error {
		changed, err := e.Admin.CoreV1().Secrets("").List(ctx, metav1.ListOptions{LabelSelector: "headwater.dev/clone"})
		if err != nil {
			return err
		}
		written := slices.ContainsFunc(changed.Items, func(s corev1.Secret) bool { return lab.SameData(&s, map[string]string{"k": "v2"}) == nil })
		return lab.ErrorIf(!written, "no clone is written yet")
	})
	require.NoError(t, h.Pause())
	proxy.Slow(0)
	frozen, thief := time.Now(), "somebody-else"
	leases := e.Admin.CoordinationV1().Leases(lab.Namespace)
	e.Eventually(func(ctx context.Context) error {
		held, err := leases.Get(ctx, "headwater", metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.NowMicro()
		held.Spec.HolderIdentity, held.Spec.RenewTime, held.Spec.AcquireTime = &thief, &now, &now
		_, err = leases.Update(ctx, held, metav1.UpdateOptions{})
		return err
	})
	e.Eventually(func(context.Context) error { return lab.ErrorIf(time.Since(frozen) < lease, "its lease still lasts") })
	require.NoError(t, h.Resume())
	log := lab.Ends(t, h)
	require.Contains(t, log, "lost the leader lease")
	require.NotContains(t, log, "CloneFailed")
	require.NotContains(t, log, "reconcile failed")
}
