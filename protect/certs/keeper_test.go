package certs

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func newKeeper(t *testing.T, client kubernetes.Interface, clk clock.Clock) (*Keeper, *prometheus.Registry) {
	t.Helper()
	registry, log := prometheus.NewRegistry(), zaptest.NewLogger(t)
	own := &Own{Client: client, Namespace: "headwater", Hosts: protecttest.Hosts(), Events: &eventLog{}, Clock: clk, Log: log}
	return NewKeeper(client, own, DefaultSettle, clk, NewMetrics(registry), log), registry
}

func storedMaterial(t *testing.T, client kubernetes.Interface) *Material {
	t.Helper()
	secret, err := client.CoreV1().Secrets("headwater").Get(t.Context(), spec.CertificateSecret, metav1.GetOptions{})
	require.NoError(t, err)
	m, err := decode(secret.Data)
	require.NoError(t, err)
	return m
}

func serves(keeper *Keeper, m *Material) bool {
	serving, err := keeper.Serving(nil)
	return err == nil && serving.Leaf.Equal(m.leaf) && strings.HasPrefix(string(keeper.Bundle()), string(m.BundlePEM()))
}

// watched waits until a keeper hears of changes of the Secret: before that, it sees no deletion.
func watched(t *testing.T, client *fake.Clientset) {
	t.Helper()
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(client.Actions(), func(a k8stesting.Action) bool { return a.Matches("watch", "secrets") })
	}, protecttest.Soon, time.Millisecond)
}

func TestKeeperMakesTheSecret(t *testing.T) {
	client := protecttest.NewClient()
	clk := clocktesting.NewFakeClock(start())
	keeper, registry := newKeeper(t, client, clk)
	_, err := keeper.Serving(nil)
	require.ErrorContains(t, err, "no certificate yet")
	require.Nil(t, keeper.Bundle())
	require.Error(t, keeper.Ready())

	changed := loop.NewWake()
	keeper.OnChange(changed.Notify)
	protecttest.Background(t, keeper.Run)
	require.Eventually(t, func() bool { return keeper.Ready() == nil }, protecttest.Soon, time.Millisecond)
	<-changed
	require.True(t, serves(keeper, storedMaterial(t, client)))

	secret, err := client.CoreV1().Secrets("headwater").Get(t.Context(), spec.CertificateSecret, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.SecretTypeTLS, secret.Type)
	gauges, err := testutil.GatherAndCount(registry, "headwater_protection_certificate_expiry_timestamp_seconds")
	require.NoError(t, err)
	require.Equal(t, 2, gauges)
	require.InDelta(t, start().Add(leafLifetime).Unix(), testutil.ToFloat64(keeper.metrics.expiries.WithLabelValues("serving")), 1)
	require.InDelta(t, start().Add(caLifetime).Unix(), testutil.ToFloat64(keeper.metrics.expiries.WithLabelValues("ca")), 1)
}

// A Secret of anybody in the namespace that cannot be decrypted makes all lists fail.
func TestTheCertificateIsServedAlthoughSecretsCannotBeListed(t *testing.T) {
	client := protecttest.NewClient()
	undecryptable := apierrors.NewInternalError(errors.New("unable to transform key"))
	fails := func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, undecryptable }
	client.PrependReactor("list", "secrets", fails)
	clk := clocktesting.NewFakeClock(start())
	keeper, _ := newKeeper(t, client, clk)
	protecttest.Background(t, keeper.Run)
	require.Eventually(t, func() bool { return keeper.Ready() == nil }, protecttest.Soon, time.Millisecond)
	stored := storedMaterial(t, client)
	require.True(t, serves(keeper, stored))

	client.PrependReactor("get", "secrets", fails)
	keeper.wake.Notify()
	require.Eventually(t, func() bool {
		keeper.mu.Lock()
		defer keeper.mu.Unlock()
		return keeper.problem != nil && strings.Contains(keeper.problem.Error(), "unable to transform key") // not that of the start
	}, protecttest.Soon, time.Millisecond)
	require.True(t, serves(keeper, stored), "what was read stays")
	clk.SetTime(start().Add(leafLifetime + time.Minute))
	require.ErrorContains(t, keeper.Ready(), "read the certificate in Secret headwater/"+spec.CertificateSecret)
}

func TestReplicasAgreeOnOneCertificate(t *testing.T) {
	client := protecttest.NewClient()
	clk := clocktesting.NewFakeClock(start())
	var keepers []*Keeper
	for range 5 {
		keeper, _ := newKeeper(t, client, clk)
		protecttest.Background(t, keeper.Run)
		keepers = append(keepers, keeper)
	}
	for _, keeper := range keepers {
		require.Eventually(t, func() bool { return keeper.Ready() == nil && serves(keeper, storedMaterial(t, client)) }, protecttest.Soon, time.Millisecond)
	}
}

// passing is a clock that advances a little with each call of Now.
type passing struct{ *clocktesting.FakeClock }

func (p passing) Now() time.Time {
	p.Step(time.Millisecond)
	return p.FakeClock.Now()
}

func (p passing) Since(moment time.Time) time.Duration { return p.Now().Sub(moment) }

func TestACertificateThatSettlesDuringALookIsServedSoonAfter(t *testing.T) {
	for early := range 20 {
		clk := passing{clocktesting.NewFakeClock(start())}
		keeper, _ := newKeeper(t, protecttest.NewClient(), clk)
		_, err := keeper.reconcile(t.Context(), nil)
		require.NoError(t, err)
		first := keeper.origin.(*Own).previous

		byAnother, _, err := Maintain(nil, first, protecttest.Hosts(), always, clk.Now())
		require.NoError(t, err)
		data, err := byAnother.encode()
		require.NoError(t, err)
		keeper.observe([]string{string(byAnother.BundlePEM())})
		clk.SetTime(keeper.published.since.Add(DefaultSettle - time.Duration(early)*time.Millisecond))
		requeueAfter, err := keeper.reconcile(t.Context(), &corev1.Secret{Data: data})
		require.NoError(t, err)
		if !serves(keeper, byAnother) {
			require.LessOrEqual(t, requeueAfter, time.Duration(early)*time.Millisecond, "%d ms before it settles", early)
		}
	}
}

func TestKeeperWritesNothingWhenNothingIsDue(t *testing.T) {
	client := protecttest.NewClient()
	clk := clocktesting.NewFakeClock(start())
	first, _ := newKeeper(t, client, clk)
	protecttest.Background(t, first.Run)
	require.Eventually(t, func() bool { return first.Ready() == nil }, protecttest.Soon, time.Millisecond)
	watched(t, client)
	require.Equal(t, []string{"create"}, protecttest.Writes(client, ""))

	second, _ := newKeeper(t, client, clk)
	protecttest.Background(t, second.Run)
	require.Eventually(t, func() bool { return second.Ready() == nil }, protecttest.Soon, time.Millisecond)
	for range 30 {
		require.Eventually(t, clk.HasWaiters, protecttest.Soon, time.Millisecond)
		clk.Step(renewalCheck)
	}
	require.Equal(t, []string{"create"}, protecttest.Writes(client, ""), "invariant 2")
}

func TestKeeperRenewsWhenDue(t *testing.T) {
	client := protecttest.NewClient()
	clk := clocktesting.NewFakeClock(start())
	keeper, _ := newKeeper(t, client, clk)
	protecttest.Background(t, keeper.Run)
	require.Eventually(t, func() bool { return keeper.Ready() == nil }, protecttest.Soon, time.Millisecond)
	before := storedMaterial(t, client)

	require.Eventually(t, clk.HasWaiters, protecttest.Soon, time.Millisecond)
	clk.Step(leafLifetime * 3 / 4)
	require.Eventually(t, func() bool { return !serves(keeper, before) }, protecttest.Soon, time.Millisecond)
	after := storedMaterial(t, client)
	require.True(t, serves(keeper, after))
	require.Equal(t, before.BundlePEM(), after.BundlePEM(), "the CA stays")
}

func TestKeeperRestoresTheSecret(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, client kubernetes.Interface){
		"when it is deleted": func(t *testing.T, client kubernetes.Interface) {
			require.NoError(t, client.CoreV1().Secrets("headwater").Delete(t.Context(), spec.CertificateSecret, metav1.DeleteOptions{}))
		},
		"when it is garbage": func(t *testing.T, client kubernetes.Interface) {
			secrets := client.CoreV1().Secrets("headwater")
			secret, err := secrets.Get(t.Context(), spec.CertificateSecret, metav1.GetOptions{})
			require.NoError(t, err)
			secret.Data, secret.ResourceVersion = map[string][]byte{"ca.crt": []byte(protecttest.Canary)}, "77"
			_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
			require.NoError(t, err)
		},
		"when it is immutable garbage": func(t *testing.T, client kubernetes.Interface) {
			secrets := client.CoreV1().Secrets("headwater")
			secret, err := secrets.Get(t.Context(), spec.CertificateSecret, metav1.GetOptions{})
			require.NoError(t, err)
			secret.Data, secret.Immutable, secret.ResourceVersion = nil, new(true), "77"
			_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := protecttest.NewClient()
			client.PrependReactor("update", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
				stored, err := client.Tracker().Get(action.GetResource(), action.GetNamespace(), spec.CertificateSecret)
				if secret, ok := stored.(*corev1.Secret); err == nil && ok && secret.Immutable != nil {
					return true, nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(), secret.Name, nil)
				}
				return false, nil, nil
			})
			keeper, _ := newKeeper(t, client, clocktesting.NewFakeClock(start()))
			protecttest.Background(t, keeper.Run)
			require.Eventually(t, func() bool { return keeper.Ready() == nil }, protecttest.Soon, time.Millisecond)
			before := storedMaterial(t, client)
			watched(t, client)

			damage(t, client)
			require.Eventually(t, func() bool { return !serves(keeper, before) }, protecttest.Soon, time.Millisecond)
			var after *Material
			require.Eventually(t, func() bool { // the fake API server deletes it once more, since it asks for no UID
				secret, err := client.CoreV1().Secrets("headwater").Get(t.Context(), spec.CertificateSecret, metav1.GetOptions{})
				if err == nil {
					after, err = decode(secret.Data)
				}
				return err == nil && serves(keeper, after)
			}, protecttest.Soon, time.Millisecond)
			requireServes(t, after, before, start())
			requireServes(t, after, after, start())
		})
	}
}

func TestKeeperServesWhatAnotherReplicaWrote(t *testing.T) {
	client := protecttest.NewClient()
	keeper, _ := newKeeper(t, client, clocktesting.NewFakeClock(start()))
	protecttest.Background(t, keeper.Run)
	require.Eventually(t, func() bool { return keeper.Ready() == nil }, protecttest.Soon, time.Millisecond)

	other := maintain(t, nil, nil, protecttest.Hosts(), start(), TaskRenewCA, TaskRenewLeaf)
	data, err := other.encode()
	require.NoError(t, err)
	secret, err := client.CoreV1().Secrets("headwater").Get(t.Context(), spec.CertificateSecret, metav1.GetOptions{})
	require.NoError(t, err)
	secret.Data, secret.ResourceVersion = data, "77"
	_, err = client.CoreV1().Secrets("headwater").Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return serves(keeper, other) }, protecttest.Soon, time.Millisecond)
}

func TestKeeperRetriesAndServesOnWhileItCannotWrite(t *testing.T) {
	client := protecttest.NewClient()
	broken := true
	client.PrependReactor("create", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
		if broken {
			broken = false
			return true, nil, apierrors.NewInternalError(errors.New("etcd is away"))
		}
		return false, nil, nil
	})
	clk := clocktesting.NewFakeClock(start())
	keeper, _ := newKeeper(t, client, clk)
	protecttest.Background(t, keeper.Run)
	require.Eventually(t, clk.HasWaiters, protecttest.Soon, time.Millisecond)
	require.Error(t, keeper.Ready(), "what is not stored is not served")
	clk.Step(loop.RetryBase)
	require.Eventually(t, func() bool { return keeper.Ready() == nil }, protecttest.Soon, time.Millisecond)

	clk.SetTime(start().Add(leafLifetime + time.Minute))
	require.ErrorContains(t, keeper.Ready(), "expired")
}

// storedSecret is a Secret as Headwater wrote it at that time.
func storedSecret(t *testing.T, at time.Time) *corev1.Secret {
	t.Helper()
	data, err := maintain(t, nil, nil, protecttest.Hosts(), at, TaskRenewCA, TaskRenewLeaf).encode()
	require.NoError(t, err)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "headwater", Name: spec.CertificateSecret, UID: "u"}, Type: corev1.SecretTypeTLS, Data: data}
}

func TestWhatIsOnlyDueTakesNothingAway(t *testing.T) {
	quota := apierrors.NewForbidden(corev1.Resource("secrets"), spec.CertificateSecret, errors.New("exceeded quota"))
	conflict := apierrors.NewConflict(corev1.Resource("secrets"), spec.CertificateSecret, errors.New("exceeded quota")) // a webhook chooses what it denies with
	const day = 24 * time.Hour
	for sentence, test := range map[string]struct {
		refused   string
		with      error
		immutable bool
		left      time.Duration
		ready     bool
		says      string
	}{
		"due, and a policy refuses the update":                 {refused: "update", left: 60 * day, ready: true, says: "the stored one is served until"},
		"due and immutable, and a quota refuses a new Secret":  {refused: "create", immutable: true, left: 60 * day, ready: true, says: "the stored one is served until"},
		"expired, and a policy refuses the update":             {refused: "update", left: -day, says: "there is no valid one to serve"},
		"due, and a webhook denies it with a conflict":         {refused: "update", with: conflict, left: 60 * day, ready: true, says: "the stored one is served until"},
		"expired and immutable, and a quota refuses a new one": {refused: "create", immutable: true, left: -day, says: "there is no valid one to serve"},
	} {
		t.Run(sentence, func(t *testing.T) {
			secret := storedSecret(t, start())
			if test.immutable {
				secret.Immutable = new(true)
			}
			client := protecttest.NewClient()
			require.NoError(t, client.Tracker().Add(secret))
			refuses := true
			client.PrependReactor(test.refused, "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
				return refuses, nil, cmp.Or[error](test.with, quota)
			})
			keeper, _ := newKeeper(t, client, clocktesting.NewFakeClock(start().Add(leafLifetime-test.left)))
			before := storedMaterial(t, client)

			for range 3 {
				_, err := keeper.reconcile(t.Context(), secret)
				require.ErrorContains(t, err, "exceeded quota", "so it is tried again")
			}
			require.Equal(t, before.BundlePEM(), storedMaterial(t, client).BundlePEM(), "nothing is lost")
			require.Equal(t, test.ready, serves(keeper, before))
			if test.ready {
				require.NoError(t, keeper.Ready())
			} else {
				require.ErrorContains(t, keeper.Ready(), "exceeded quota")
			}
			said := keeper.origin.(*Own).Events.(*eventLog).all()
			require.Len(t, said, 1, "once")
			require.Equal(t, "CertificateNotRenewed", said[0].Reason)
			require.Contains(t, said[0].Note, test.says)

			refuses = false
			_, err := keeper.reconcile(t.Context(), secret)
			require.NoError(t, err)
			require.NoError(t, keeper.Ready())
			require.False(t, serves(keeper, before))
			require.True(t, serves(keeper, storedMaterial(t, client)))
		})
	}
}

func TestACertificateOfAnotherTimeIsNoticedOnceTheClockIsRight(t *testing.T) {
	client := protecttest.NewClient()
	clk := clocktesting.NewFakeClock(start().Add(3 * time.Hour)) // ahead
	keeper, _ := newKeeper(t, client, clk)
	protecttest.Background(t, keeper.Run)
	require.Eventually(t, func() bool { return keeper.Ready() == nil }, protecttest.Soon, time.Millisecond)
	before := storedMaterial(t, client)
	watched(t, client)
	require.Eventually(t, clk.HasWaiters, protecttest.Soon, time.Millisecond)
	clk.SetTime(start())
	require.ErrorContains(t, keeper.Ready(), "valid only from")
	require.LessOrEqual(t, renewalCheck, time.Minute)
	keeper.wake.Notify() // a fake clock that is put back wakes nobody
	require.Eventually(t, func() bool { return keeper.Ready() == nil && !serves(keeper, before) }, protecttest.Soon, time.Millisecond)
}
