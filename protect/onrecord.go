package protect

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// onRecord is a ConfigMap of Headwater's own namespace, for the next leader.
type onRecord struct {
	client          kubernetes.Interface
	namespace, name string
}

// read returns what it holds, which is nothing where there is none.
func (r onRecord) read(ctx context.Context) (map[string]string, error) {
	found, err := r.client.CoreV1().ConfigMaps(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", r.namespace, r.name, err)
	default:
		return found.Data, nil
	}
}

// write has it hold data and nothing else.
func (r onRecord) write(ctx context.Context, data map[string]string) error {
	api := r.client.CoreV1().ConfigMaps(r.namespace)
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.name, Namespace: r.namespace, Labels: managedLabels()}, Data: data}
	_, err := api.Update(ctx, desired, metav1.UpdateOptions{FieldManager: mark.FieldManager})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, desired, metav1.CreateOptions{FieldManager: mark.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", r.namespace, r.name, err)
	}
	return nil
}
