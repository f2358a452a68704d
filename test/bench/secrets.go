package main

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// secrets watches the Secrets called name.
func (a *arena) secrets(ctx context.Context, name string) (*measure.Stream, error) {
	return measure.Open(ctx, a.admin.CoreV1().RESTClient(), "secrets", metav1.NamespaceAll, name)
}

// inTarget says yes to a Secret in a target namespace whose payload is of
// version.
func inTarget(version string) func(watch.Event) bool {
	return func(event watch.Event) bool {
		secret, ok := event.Object.(*corev1.Secret)
		return ok && event.Type != watch.Deleted && strings.HasPrefix(secret.Namespace, targets) && string(secret.Data["version"]) == version
	}
}
