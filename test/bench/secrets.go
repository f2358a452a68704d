package main

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// secrets watches the Secrets called name.
func (a *arena) secrets(ctx context.Context, name string) (*measure.Stream, error) {
	return measure.Open(ctx, a.Admin.CoreV1().RESTClient(), "secrets", metav1.NamespaceAll, name)
}

// inTarget says yes to a Secret in a target namespace whose payload is of
// version.
func inTarget(version string) func(watch.Event) bool {
	return func(event watch.Event) bool {
		secret, ok := event.Object.(*corev1.Secret)
		return ok && event.Type != watch.Deleted && strings.HasPrefix(secret.Namespace, targets) && string(secret.Data["version"]) == version
	}
}

// bareClone is a Secret of the bench's own that has as much metadata as a clone,
// which costs the API server as much as the payload. Nobody takes it for one.
func bareClone(namespace, version string) *corev1.Secret {
	secret := measure.Secret(namespace, bare, version)
	mark.Stamp(&secret.ObjectMeta, mark.Clone{
		Rule: "bench", Source: object.Ref{Kind: object.Secret, Namespace: sourceNamespace, Name: bare},
		SourceUID: "00000000-0000-0000-0000-000000000000", SourceVersion: version,
	})
	secret.Labels, secret.Annotations = ownDomain(secret.Labels), ownDomain(secret.Annotations)
	return secret
}

// ownDomain is marks in another domain than Headwater's, as long as that.
func ownDomain(marks map[string]string) map[string]string {
	own := make(map[string]string, len(marks))
	for key, value := range marks {
		own["benchmark.dev/"+strings.TrimPrefix(key, mark.Domain)] = value
	}
	return own
}
