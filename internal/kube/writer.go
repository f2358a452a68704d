package kube

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
func (w *Writer) Create(ctx context.Context, o *object.Full) (Stored, error) {
	return w.send(ctx, http.MethodPost, o, "", "create "+o.Ref().String())
}

// TryCreate creates the object in a dry run. It returns nil if the API server would store it
// once the present object of its name is gone. The API server looks for that last, so that
// AlreadyExists means that admission allows it; a quota counts the present object, too.
func (w *Writer) TryCreate(ctx context.Context, o *object.Full) error {
	_, err := w.send(ctx, http.MethodPost, o, "", fmt.Sprintf("recreate %s (dry run; the object was not changed)", o.Ref()), metav1.DryRunAll)
	return notAllowed(err)
}

// notAllowed returns why an object could not be created once the present one of its name is
// gone, if err came of a dry run of that; nil if it could.
func notAllowed(err error) error {
	switch {
	case err == nil, apierrors.IsAlreadyExists(err) && !admission.Refused(err):
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; if a quota is full, which counts the present object, too, raise it or delete the object yourself", err)
	default:
		return err
	}
}

// WouldStore returns what the API server would store of the object if it had another name: what
// admission makes of it. known is false if that name is refused, which says nothing of o.
func (w *Writer) WouldStore(ctx context.Context, o *object.Full) (would Stored, known bool, err error) {
	unnamed := *o
	unnamed.Name, unnamed.GenerateName = "", o.Name+"-"
	would, err = w.send(ctx, http.MethodPost, &unnamed, "", "look what admission makes of "+o.Ref().String(), metav1.DryRunAll)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || admission.Refused(err) {
		return Stored{}, false, nil
	}
	return would, err == nil, err
}

// Update replaces the object. The UID and resourceVersion of o must be set; they
// are the preconditions of the request.
func (w *Writer) Update(ctx context.Context, o *object.Full) (Stored, error) {
	if o.UID == "" || o.ResourceVersion == "" {
		return Stored{}, fmt.Errorf("update %s: UID or resourceVersion is empty", o.Ref())
	}
	return w.send(ctx, http.MethodPut, o, o.Name, "update "+o.Ref().String())
}

// send sends o, to the object of that name if it is not empty.
func (w *Writer) send(ctx context.Context, method string, o *object.Full, name, doing string, dryRun ...string) (Stored, error) {
	body, err := encode(o)
	if err != nil {
		return Stored{}, fmt.Errorf("%s: %w", doing, err)
	}
	request := w.client.CoreV1().RESTClient().Verb(method).AbsPath("/api/v1/namespaces", o.Namespace, o.Kind.Resource(), name).
		Param("fieldManager", mark.FieldManager).Body(body).SetHeader("Content-Type", runtime.ContentTypeProtobuf)
	for _, what := range dryRun {
		request.Param("dryRun", what)
	}
	answer, err := request.Stream(ctx)
	if err != nil {
		return Stored{}, fmt.Errorf("%s: %w", doing, admission.Redact(err))
	}
	stored, err := readStored(answer, o, body)
	if err != nil {
		return Stored{}, fmt.Errorf("%s: %w", doing, err)
	}
	return stored, nil
}

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
