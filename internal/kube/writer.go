package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Writer writes Secrets and ConfigMaps under Headwater's field manager. Errors
// are the API server's own, wrapped, and can be told apart with apierrors.
type Writer struct {
	client kubernetes.Interface
}

// NewWriter returns a Writer over clients.
func NewWriter(clients *Clients) *Writer { return &Writer{client: clients.Typed} }

// Get reads an object from the API server, past the caches.
func (w *Writer) Get(ctx context.Context, ref object.Ref) (*object.Full, error) {
	var live any
	var err error
	if ref.Kind == object.Secret {
		live, err = w.client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	} else {
		live, err = w.client.CoreV1().ConfigMaps(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", ref, err)
	}
	return object.FromAPI(live)
}

// Describe reads an object as the caches of clones would, past the caches; nil
// when there is none.
func (w *Writer) Describe(ctx context.Context, ref object.Ref, key *DigestKey) (*object.Digested, error) {
	hasher, err := key.Hasher()
	if err != nil {
		return nil, err
	}
	found, err := w.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return describe(found, hasher), nil
}

// Create makes the object, which must not exist.
func (w *Writer) Create(ctx context.Context, o *object.Full) error {
	options := metav1.CreateOptions{FieldManager: mark.FieldManager}
	var err error
	if o.Kind == object.Secret {
		_, err = w.client.CoreV1().Secrets(o.Namespace).Create(ctx, o.ToSecret(), options)
	} else {
		_, err = w.client.CoreV1().ConfigMaps(o.Namespace).Create(ctx, o.ToConfigMap(), options)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", o.Ref(), err)
	}
	return nil
}

// Update replaces the object. The UID and resourceVersion of o are its
// preconditions and must be set.
func (w *Writer) Update(ctx context.Context, o *object.Full) error {
	if o.UID == "" || o.ResourceVersion == "" {
		return fmt.Errorf("update %s: without UID and resourceVersion", o.Ref())
	}
	options := metav1.UpdateOptions{FieldManager: mark.FieldManager}
	var err error
	if o.Kind == object.Secret {
		_, err = w.client.CoreV1().Secrets(o.Namespace).Update(ctx, o.ToSecret(), options)
	} else {
		_, err = w.client.CoreV1().ConfigMaps(o.Namespace).Update(ctx, o.ToConfigMap(), options)
	}
	if err != nil {
		return fmt.Errorf("update %s: %w", o.Ref(), err)
	}
	return nil
}

// Delete removes the object that meta describes, and no other that may have
// taken its name or been changed since.
func (w *Writer) Delete(ctx context.Context, ref object.Ref, meta metav1.ObjectMeta) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: &meta.UID, ResourceVersion: &meta.ResourceVersion,
	}}
	var err error
	if ref.Kind == object.Secret {
		err = w.client.CoreV1().Secrets(ref.Namespace).Delete(ctx, ref.Name, options)
	} else {
		err = w.client.CoreV1().ConfigMaps(ref.Namespace).Delete(ctx, ref.Name, options)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", ref, err)
	}
	return nil
}
