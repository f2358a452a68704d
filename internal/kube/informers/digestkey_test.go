package informers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/mark"
)

func TestADeletedDigestKeyIsPutBackAsItWas(t *testing.T) {
	const namespace = "headwater-system"
	other := []byte("0123456789abcdef0123456789abcdef")
	for name, test := range map[string]struct {
		stored  []byte // none when nil
		seen    bool   // by the cache
		created error  // instead of creating it
		left    []byte // the key in use when nil
		says    string // in the log or as the error
	}{
		"it is gone":                          {says: "was deleted; restored"},
		"it is gone, and cannot be written":   {created: apierrors.NewServiceUnavailable("etcd is away"), says: "etcd is away"},
		"a webhook quotes it":                 {created: apierrors.NewInternalError(errors.New(`failed calling webhook "w": c4n4ry`)), says: `webhook "w"`},
		"somebody was faster":                 {stored: other, left: other},
		"somebody put in another":             {stored: other, seen: true, left: other, says: "differs from the key in use"},
		"somebody put in what cannot be used": {stored: []byte("c4n4ry"), seen: true, left: []byte("c4n4ry"), says: "differs from the key in use"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			secrets := client.CoreV1().Secrets(namespace)
			key := digestkey.New(client, namespace)
			require.NoError(t, key.Load(t.Context()))
			inUse, err := secrets.Get(t.Context(), digestkey.SecretName, metav1.GetOptions{})
			require.NoError(t, err)
			require.NoError(t, secrets.Delete(t.Context(), digestkey.SecretName, metav1.DeleteOptions{}))
			var stored *storedKey
			if test.stored != nil {
				secret, err := secrets.Create(t.Context(), key.Secret(test.stored, time.Time{}), metav1.CreateOptions{})
				require.NoError(t, err)
				if test.seen {
					stored, err = keepStoredKey(secret)
					require.NoError(t, err)
				}
			}
			client.PrependReactor("create", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
				return test.created != nil, nil, test.created
			})

			core, logged := observer.New(zapcore.DebugLevel)
			err = putKeyBack(t.Context(), key, kube.NewOwner(key.Client), stored, zap.New(core))

			said := fmt.Sprint(err)
			for _, entry := range logged.All() {
				said += entry.Message
			}
			require.Contains(t, said, test.says)
			require.Equal(t, test.created != nil, err != nil)
			require.NotContains(t, said, "c4n4ry")
			left, err := secrets.Get(t.Context(), digestkey.SecretName, metav1.GetOptions{})
			if test.created != nil {
				require.True(t, apierrors.IsNotFound(err))
				return
			}
			require.NoError(t, err)
			want := test.left
			if want == nil {
				want = inUse.Data[digestkey.SecretField]
			}
			require.Equal(t, want, left.Data[digestkey.SecretField])
		})
	}
}

func TestARightDigestKeyIsLeftAlone(t *testing.T) {
	client := fake.NewClientset()
	key := digestkey.New(client, "headwater-system")
	require.NoError(t, key.Load(t.Context()))
	secret, err := client.CoreV1().Secrets("headwater-system").Get(t.Context(), digestkey.SecretName, metav1.GetOptions{})
	require.NoError(t, err)
	stored, err := keepStoredKey(secret)
	require.NoError(t, err)
	client.ClearActions()
	core, logged := observer.New(zapcore.DebugLevel)
	require.NoError(t, putKeyBack(t.Context(), key, kube.NewOwner(key.Client), stored, zap.New(core)))
	require.Empty(t, client.Actions())
	require.Empty(t, logged.All())
}

func TestTheTimeOfTheInstallationOutlivesTheSecret(t *testing.T) {
	const namespace = "headwater-system"
	client := fake.NewClientset()
	secrets := client.CoreV1().Secrets(namespace)
	installed := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	created := installed
	client.PrependReactor("create", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		create, _ := action.(k8stesting.CreateAction)
		secret, _ := create.GetObject().(*corev1.Secret)
		secret.CreationTimestamp = metav1.NewTime(created)
		return false, nil, nil
	})
	key := digestkey.New(client, namespace)
	require.Zero(t, key.InstalledAt(), "it is not loaded yet")
	require.NoError(t, key.Load(t.Context()))
	require.Equal(t, installed, key.InstalledAt().UTC())

	for range 2 { // it is put back again and again
		created = created.Add(time.Hour)
		require.NoError(t, secrets.Delete(t.Context(), digestkey.SecretName, metav1.DeleteOptions{}))
		require.NoError(t, putKeyBack(t.Context(), key, kube.NewOwner(key.Client), nil, zap.NewNop()))
		key = digestkey.New(client, namespace)
		require.NoError(t, key.Load(t.Context()))
		require.Equal(t, installed, key.InstalledAt().UTC())
	}

	forged, err := secrets.Get(t.Context(), digestkey.SecretName, metav1.GetOptions{})
	require.NoError(t, err)
	for text, want := range map[string]time.Time{"": created, "x": created, mark.FormatTime(created.Add(time.Hour)): created} {
		forged.Annotations = map[string]string{mark.InstalledAt: text}
		require.Equal(t, want, digestkey.InstalledAt(forged).UTC())
	}

	require.NoError(t, secrets.Delete(t.Context(), digestkey.SecretName, metav1.DeleteOptions{}))
	key = digestkey.New(client, namespace)
	require.NoError(t, key.Load(t.Context()))
	require.Equal(t, created, key.InstalledAt().UTC(), "a key that nobody had any more is a new installation")
}
