// Package configmap stores small records in ConfigMaps of Headwater's own
// namespace.
package configmap

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// Store is one ConfigMap, in which a leader leaves what the next one needs to
// know.
type Store struct {
	Client          kubernetes.Interface
	Namespace, Name string
}

// Read returns the data; nil when the ConfigMap does not exist.
func (s Store) Read(ctx context.Context) (map[string]string, error) {
	found, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", s.Namespace, s.Name, err)
	default:
		return found.Data, nil
	}
}

// Write replaces the data, and creates the ConfigMap when it does not exist. One that
// somebody made immutable is recreated.
func (s Store) Write(ctx context.Context, data map[string]string) error {
	api := s.Client.CoreV1().ConfigMaps(s.Namespace)
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, Labels: mark.ManagedLabels()}, Data: data}
	_, err := api.Update(ctx, desired, metav1.UpdateOptions{FieldManager: mark.FieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) && s.deleteImmutable(ctx) {
		_, err = api.Create(ctx, desired, metav1.CreateOptions{FieldManager: mark.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}

// deleteImmutable reports whether the ConfigMap is immutable, so that no write to it is valid,
// and was deleted.
func (s Store) deleteImmutable(ctx context.Context) bool {
	api := s.Client.CoreV1().ConfigMaps(s.Namespace)
	found, err := api.Get(ctx, s.Name, metav1.GetOptions{})
	return err == nil && found.Immutable != nil && *found.Immutable &&
		api.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(found.UID))}) == nil
}
