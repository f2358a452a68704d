package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Writer is a Reader that also writes, under Headwater's field manager.
type Writer struct{ Reader }

// NewWriter returns a Writer over clients.
func NewWriter(clients *Clients) *Writer { return &Writer{NewReader(clients)} }

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
