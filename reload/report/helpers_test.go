package report

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func testHasher(t testing.TB, fill byte) *digest.Hasher {
	t.Helper()
	hasher, err := digest.New(bytes.Repeat([]byte{fill}, digest.KeySize))
	require.NoError(t, err)
	return hasher
}

func digests(h *digest.Hasher, data map[string]string) object.Digests {
	content := object.Content{Data: map[string][]byte{}}
	for key, value := range data {
		content.Data[key] = []byte(value)
	}
	return object.Digest(h, content)
}

func web() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "web-uid", ResourceVersion: "1"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Env: []corev1.EnvVar{secretEnv("base", "password")}}},
		}}},
	}
}

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // read only

type data map[string]string

// secret is a Secret of that name, governed by rule r under action Auto, with
// that data.
func secret(h *digest.Hasher, name string, mode refs.Mode, content data, keys ...string) decide.Input {
	return decide.Input{
		Reference: refs.Reference{Kind: object.Secret, Name: name, Mode: mode, Keys: keys},
		Object:    object.Ref{Kind: object.Secret, Namespace: "ns", Name: name},
		Rule:      "r", Action: spec.Auto, Exists: true, Digests: digests(h, content),
	}
}

func secretEnv(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key,
	}}}
}

func inNamespace(namespace, name string) kinds.Key {
	return kinds.Key{Kind: kinds.KindDeployment, Namespace: namespace, Name: name}
}
