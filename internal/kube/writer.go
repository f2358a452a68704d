package kube

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/kube/admission"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Writer is a Reader that also writes, as Headwater's field manager. Its errors
// never contain data of the written object.
type Writer struct{ Reader }

// NewWriter returns a Writer over clients.
func NewWriter(clients *Clients) *Writer { return &Writer{NewReader(clients)} }

// Create creates the object, which must not exist.
func (w *Writer) Create(ctx context.Context, o *object.Full) error {
	request := w.request(http.MethodPost, o).VersionedParams(&metav1.CreateOptions{FieldManager: mark.FieldManager}, scheme.ParameterCodec)
	if err := request.Do(ctx).Error(); err != nil {
		return fmt.Errorf("create %s: %w", o.Ref(), admission.Redact(err))
	}
	return nil
}

// TryCreate creates the object in a dry run, under a generated name, because the
// object itself may still exist. The error says why the API server would not store
// it.
func (w *Writer) TryCreate(ctx context.Context, o *object.Full) error {
	unnamed := *o
	unnamed.Name, unnamed.GenerateName = "", o.Name+"-"
	options := &metav1.CreateOptions{FieldManager: mark.FieldManager, DryRun: []string{metav1.DryRunAll}}
	if err := w.request(http.MethodPost, &unnamed).VersionedParams(options, scheme.ParameterCodec).Do(ctx).Error(); err != nil {
		return fmt.Errorf("recreate %s (dry run; the object was not changed): %w", o.Ref(), admission.Redact(err))
	}
	return nil
}

// Update replaces the object. The UID and resourceVersion of o must be set; they
// are the preconditions of the request.
func (w *Writer) Update(ctx context.Context, o *object.Full) error {
	if o.UID == "" || o.ResourceVersion == "" {
		return fmt.Errorf("update %s: UID or resourceVersion is empty", o.Ref())
	}
	request := w.request(http.MethodPut, o).Name(o.Name).VersionedParams(&metav1.UpdateOptions{FieldManager: mark.FieldManager}, scheme.ParameterCodec)
	if err := request.Do(ctx).Error(); err != nil {
		return fmt.Errorf("update %s: %w", o.Ref(), admission.Redact(err))
	}
	return nil
}

// request returns a request with o as its body. It accepts only metadata in the
// response: the watch delivers the object anyway, and its data may be large.
func (w *Writer) request(method string, o *object.Full) *rest.Request {
	return w.client.CoreV1().RESTClient().Verb(method).SetHeader("Accept", metadataOnly).
		Namespace(o.Namespace).Resource(o.Kind.Resource()).Body(o.ToAPI())
}

// metadataOnly lists the media types of a response with metadata only:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches
const (
	partial      = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
	metadataOnly = runtime.ContentTypeProtobuf + partial + runtime.ContentTypeJSON + partial + runtime.ContentTypeJSON
)

// Delete deletes the object with the UID and resourceVersion of meta. It fails if
// the object was changed or recreated since.
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
		return fmt.Errorf("delete %s: %w", ref, admission.Redact(err))
	}
	return nil
}
