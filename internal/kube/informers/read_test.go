package informers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/object"
)

// unread are caches of which those of Secrets cannot be read until readable is set.
type unread struct {
	*testing.T
	*Caches

	readable atomic.Bool
}

func newUnread(t *testing.T) *unread {
	u := &unread{T: t}
	refuse := func(k8stesting.Action) (bool, runtime.Object, error) {
		return !u.readable.Load(), nil, errors.New("no key decrypts it")
	}
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	require.NoError(t, corev1.AddToScheme(scheme))
	typed, metadata := fake.NewClientset(), metadatafake.NewSimpleMetadataClient(scheme)
	typed.PrependReactor("list", "secrets", refuse)
	metadata.PrependReactor("list", "secrets", refuse)
	key, err := digestkey.NewEphemeral()
	require.NoError(t, err)
	u.Caches, err = NewCaches(&kube.Clients{Typed: typed, Metadata: metadata}, key, zaptest.NewLogger(t))
	require.NoError(t, err)
	return u
}

func (u *unread) start() {
	ctx, cancel := context.WithCancel(u.Context())
	u.Start(ctx)
	u.Cleanup(func() { cancel(); u.Wait() })
}

// awaits returns whether AwaitRead returns true, and does not if the caches stay as they are.
func (u *unread) awaits(subscriptions *Subscriptions) bool {
	ctx, cancel := context.WithTimeout(u.Context(), 5*syncedPoll)
	defer cancel()
	return u.AwaitRead(ctx, subscriptions)
}

func TestWhatOneKindLacksIsKnownOnceThatKindIsRead(t *testing.T) {
	u := newUnread(t)
	require.True(t, u.IsBlind(object.ConfigMap, ""), "nothing was read yet")
	u.start()
	require.Eventually(t, func() bool { return u.IsFull(object.ConfigMap) }, deadline, time.Millisecond)
	require.False(t, u.IsBlind(object.ConfigMap, ""))
	require.False(t, u.IsBlindToDelivery(object.ConfigMap, ""))

	require.False(t, u.IsFull(object.Secret))
	require.True(t, u.IsBlind(object.Secret, ""))
	require.True(t, u.IsBlindToDelivery(object.Secret, ""))
	require.ElementsMatch(t, []string{"clones: secrets", "other secrets"}, u.Awaited())
	require.ElementsMatch(t, []string{"clones: secrets", "other secrets"}, u.Pending())
	require.False(t, u.awaits(&Subscriptions{}), "they may be read soon")

	u.readable.Store(true)
	require.True(t, u.AwaitRead(t.Context(), &Subscriptions{}))
	require.False(t, u.IsBlind(object.Secret, ""))
	require.Empty(t, u.Awaited())
}

func TestWhatOnlyOneControllerNeedsIsAwaitedByItAlone(t *testing.T) {
	u := newUnread(t)
	u.readable.Store(true)
	apart, client := secretView(t, zaptest.NewLogger(t), keepUnmanaged)
	var refuses atomic.Bool
	refuses.Store(true)
	client.PrependReactor("list", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
		return refuses.Load(), nil, errors.New("forbidden")
	})
	u.AddApart(apart, Always)
	var added, required Subscriptions
	added.Add(apart.OnChange(func(Change[*Unmanaged]) {}))
	required.Require(apart.OnChange(func(Change[*Unmanaged]) {}))
	require.NoError(t, errors.Join(added.Err(), required.Err()))
	u.start()
	require.True(t, u.AwaitRead(t.Context(), &Subscriptions{}), "nobody else waits for it")
	require.Equal(t, []string{"secrets"}, u.Awaited(), "the process is not ready before it is known whether it can be read")
	require.Equal(t, []string{"secrets"}, added.Behind())
	require.False(t, u.awaits(&added))
	require.False(t, u.awaits(&required))

	refuses.Store(false)
	require.True(t, u.AwaitRead(t.Context(), &added))
	require.True(t, u.AwaitRead(t.Context(), &required))
	require.Empty(t, required.Behind())
}
