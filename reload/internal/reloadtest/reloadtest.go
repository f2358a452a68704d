// Package reloadtest holds what the tests of reload share. It imports only rooms up to
// optin, so that tests inside the rooms above can use it.
package reloadtest

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Birth is when the objects of tests were created. It is read only.
var Birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Data is the data of a Secret or ConfigMap.
type Data map[string]string

// Notes are annotations.
type Notes map[string]string

// Annotations of Reloader.
const (
	SecretNames    = "secret.reloader.stakater.com/reload"
	ConfigMapNames = "configmap.reloader.stakater.com/reload"
	SecretAuto     = "secret.reloader.stakater.com/auto"
	SecretExcludes = "secrets.exclude.reloader.stakater.com/reload"
)

// Hasher returns a hasher with a key of that byte.
func Hasher(t testing.TB, fill byte) *digest.Hasher {
	t.Helper()
	hasher, err := digest.New(bytes.Repeat([]byte{fill}, digest.KeySize))
	require.NoError(t, err)
	return hasher
}

// Digests returns the digests of the keys of data.
func Digests(h *digest.Hasher, data map[string]string) object.Digests {
	content := object.Content{Data: map[string][]byte{}}
	for key, value := range data {
		content.Data[key] = []byte(value)
	}
	return object.Digest(h, content)
}

// BothTools are settings that honour the annotations of Reloader and Wave.
func BothTools() spec.Settings {
	return spec.Settings{OptIn: new(true), Compatibility: []spec.Tool{spec.Reloader, spec.Wave}}
}

// Saying is a Deployment with these annotations, and these on its pod template.
func Saying(annotations, template Notes) (*metav1.ObjectMeta, *optin.ThirdParty) {
	meta := &metav1.ObjectMeta{Namespace: "ns", Name: "w", Annotations: annotations}
	return meta, optin.ReadThirdParty(kinds.KindDeployment, "ns", annotations, template)
}

// InNamespace is the key of a Deployment.
func InNamespace(namespace, name string) kinds.Key {
	return kinds.Key{Kind: kinds.KindDeployment, Namespace: namespace, Name: name}
}

// SetTarget is a target of kind Bucket with the label set=yes, whose fields at paths are
// set from the key named key.
func SetTarget(t testing.TB, paths ...string) spec.CompiledTarget {
	t.Helper()
	declared := spec.Target{
		CustomKind: kinds.CustomKind{Group: "example.com", Version: "v1", Kind: "Bucket"},
		Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{"set": "yes"}},
	}
	for _, path := range paths {
		declared.Set = append(declared.Set, spec.SetField{From: "key", To: path})
	}
	compiled, err := spec.CompileTarget(declared)
	require.NoError(t, err)
	return compiled
}

// Custom parses the manifest of a custom resource.
func Custom(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &u.Object))
	return &u
}
