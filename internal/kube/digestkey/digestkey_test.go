package digestkey

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestReplicasAgreeOnOneDigestKey(t *testing.T) {
	client := fake.NewClientset()
	first, second := New(client, "headwater-system"), New(client, "headwater-system")
	_, err := first.Hasher()
	require.ErrorContains(t, err, "not loaded yet")
	require.NoError(t, first.Load(t.Context()))
	require.NoError(t, second.Load(t.Context()))
	a, err := first.Hasher()
	require.NoError(t, err)
	b, err := second.Hasher()
	require.NoError(t, err)
	require.Equal(t, a.ID(), b.ID())

	secret, err := client.CoreV1().Secrets("headwater-system").Get(t.Context(), SecretName, metav1.GetOptions{})
	require.NoError(t, err)
	secret.Data[SecretField] = []byte("c4n4ry")
	_, err = client.CoreV1().Secrets("headwater-system").Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	err = first.Load(t.Context())
	require.ErrorContains(t, err, "delete the Secret, and Headwater creates a new key")
	require.NotContains(t, err.Error(), "c4n4ry")
}
