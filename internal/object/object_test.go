package object

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
)

func TestRefRoundTrip(t *testing.T) {
	ref := Ref{Kind: ConfigMap, Namespace: "platform", Name: "ca.bundle"}
	parsed, err := ParseRef(ref.String())
	require.NoError(t, err)
	require.Equal(t, ref, parsed)
	for _, bad := range []string{"", "Secret", "Secret/a", "Secret//b", "Secret/a/", "Pod/a/b", "Secret/a/b/c"} {
		_, err := ParseRef(bad)
		require.Error(t, err, bad)
	}
}

func TestConversionKeepsPayload(t *testing.T) {
	yes := true
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": {0, 1}}, Immutable: &yes,
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"},
		Data:       map[string]string{"k": "v"}, BinaryData: map[string][]byte{"b": {0xff}},
	}
	full, err := FromAPI(secret)
	require.NoError(t, err)
	require.Equal(t, secret, full.ToSecret())
	full, err = FromAPI(configMap)
	require.NoError(t, err)
	require.Equal(t, configMap, full.ToConfigMap())
	_, err = FromAPI(&corev1.Pod{})
	require.ErrorContains(t, err, "neither a Secret nor a ConfigMap")
}

func TestDigestsTellDataFromBinaryData(t *testing.T) {
	hasher, err := digest.New(make([]byte, digest.KeySize))
	require.NoError(t, err)
	text := Digest(hasher, Content{Data: map[string][]byte{"k": []byte("v")}})
	binary := Digest(hasher, Content{BinaryData: map[string][]byte{"k": []byte("v")}})
	require.NotEqual(t, text, binary)
	sum, found := text.Sum("k")
	require.True(t, found)
	require.Equal(t, text[0].Sum, sum)
	_, found = text.Sum("other")
	require.False(t, found)
}

func TestDigestedHoldsNoPayloadAndKnowsWhenItChanged(t *testing.T) {
	hasher, err := digest.New(make([]byte, digest.KeySize))
	require.NoError(t, err)
	early, late := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	labelled := metav1.NewTime(time.Unix(300, 0))
	full := &Full{Kind: Secret, Content: Content{Type: "Opaque", Data: map[string][]byte{"k": []byte("v")}}}
	full.ManagedFields = []metav1.ManagedFieldsEntry{
		{Time: &early, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:k":{}}}`)},
		{Time: &late, FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)},
		{Time: &labelled, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`)},
	}
	digested := full.Digested(hasher)
	require.Equal(t, late.Time, digested.ChangedAt)
	require.Len(t, digested.Digests, 1)
	require.Equal(t, "Opaque", digested.Type)
}
