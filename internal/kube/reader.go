package kube

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Describe returns object without its data, but with digests and with what an
// update needs. It does not set MadeByUs, which is expensive to find out.
func Describe(full *object.Full, hasher *digest.Hasher) *object.Digested {
	digested := full.Digested(hasher)
	digested.LabelsByUs, digested.AnnotationsByUs = mark.WrittenKeys(full)
	digested.Place = mark.PlaceOf(full)
	digested.Annotations = maps.Clone(full.Annotations) // full may be what is written next
	delete(digested.Annotations, mark.Target)           // differs between clones
	delete(digested.Annotations, mark.SourceVersion)    // differs after every write, and nothing reads it
	return digested
}

// Reader reads single Secrets and ConfigMaps from the API server, not from the
// caches. It wraps the API server's errors, so apierrors.IsNotFound and the like
// work.
type Reader struct {
	client   kubernetes.Interface
	metadata metadata.Interface
}

// NewReader returns a Reader over clients.
func NewReader(clients *Clients) Reader {
	return Reader{client: clients.Typed, metadata: clients.Metadata}
}

// Get reads an object.
func (r Reader) Get(ctx context.Context, ref object.Ref) (*object.Full, error) {
	var live any
	var err error
	if ref.Kind == object.Secret {
		live, err = r.client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	} else {
		live, err = r.client.CoreV1().ConfigMaps(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", ref, err)
	}
	return object.FromAPI(live)
}

// Describe reads an object in the form of the clone caches. It returns nil if the
// object does not exist.
func (r Reader) Describe(ctx context.Context, ref object.Ref, key *digestkey.Key) (*object.Digested, error) {
	hasher, err := key.Hasher()
	if err != nil {
		return nil, err
	}
	found, err := r.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	described := Describe(found, hasher)
	described.MadeByUs = described.Place != object.Elsewhere && mark.MadeByUs(found.ManagedFields)
	return described, nil
}

// LastOtherManager returns the field manager that wrote the object after
// Headwater, as mark.LastOther does, and whether the object exists.
func (r Reader) LastOtherManager(ctx context.Context, ref object.Ref) (manager string, exists bool, err error) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: ref.Kind.Resource()}
	found, err := r.metadata.Resource(resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("get %s: %w", ref, err)
	}
	return mark.LastOther(found.ManagedFields), true, nil
}
