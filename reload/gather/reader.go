package gather

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
)

// readWorkers is how many objects are read at once.
const readWorkers = 8

// Reader keeps digests of objects that are neither sources nor clones, if an owner or a
// section asks for them. It reads each resourceVersion once, however many consumers it
// has, and drops the data after digesting it. It retries a failed read without limit,
// and reads other objects meanwhile.
type Reader struct {
	reader kube.Reader
	caches *informers.Caches
	key    *digestkey.Key
	Queue  *queue.Runner[object.Ref]
	// Wanted reports whether a consumer still needs an object.
	Wanted func(object.Ref) bool
	// Done is called after an object was read. before is its previous version, nil at
	// first.
	Done func(ref object.Ref, before *object.Digested)
	// Labels reports whether labels of objects are needed.
	Labels func() bool

	known sync.Map // from object.Ref to *object.Digested
}

// NewReader allocates a Reader. The caller sets Wanted and Done before Queue runs.
func NewReader(clients *kube.Clients, caches *informers.Caches, key *digestkey.Key, registry *prometheus.Registry, log *zap.Logger) *Reader {
	r := &Reader{reader: kube.NewReader(clients), caches: caches, key: key, Labels: func() bool { return false }}
	r.Queue = queue.New(queue.Options{Name: "reload-reads", Workers: readWorkers, Log: log, Registry: registry}, r.Reconcile)
	return r
}

// Get returns the object at resourceVersion or later. If it is not known, Get returns
// nil and enqueues a read.
func (r *Reader) Get(ref object.Ref, resourceVersion string) *object.Digested {
	if known := r.At(ref, resourceVersion); known != nil {
		return known
	}
	r.Queue.Fresh(ref)
	return nil
}

// Latest returns the last version that was read; nil if none was.
func (r *Reader) Latest(ref object.Ref) *object.Digested {
	value, _ := r.known.Load(ref)
	known, _ := value.(*object.Digested)
	return known
}

// At is Get without enqueuing a read.
func (r *Reader) At(ref object.Ref, resourceVersion string) *object.Digested {
	known := r.Latest(ref)
	switch {
	case known == nil, known.ResourceVersion != resourceVersion && !object.NewerThan(known.ResourceVersion, resourceVersion):
		return nil
	case known.Labels == nil && r.Labels():
		return nil // it was read before labels were needed
	default:
		return known
	}
}

// Review enqueues ref, to read a new version, or to forget it if no consumer needs it.
func (r *Reader) Review(ref object.Ref) {
	if _, known := r.known.Load(ref); known || r.Wanted(ref) {
		r.Queue.Fresh(ref)
	}
}

// ReviewKnown reviews those of objects that are known, because a consumer may not need them
// any more.
func (r *Reader) ReviewKnown(objects ...object.Ref) {
	for _, ref := range objects {
		if _, known := r.known.Load(ref); known {
			r.Queue.Bulk(ref)
		}
	}
}

// ReviewAll reviews the known objects that which selects, after a change of rules or
// preferences.
func (r *Reader) ReviewAll(which func(object.Ref) bool) {
	r.known.Range(func(key, _ any) bool {
		if ref, is := key.(object.Ref); is && which(ref) {
			r.Queue.Bulk(ref)
		}
		return true
	})
}

// Reconcile reads ref if its cached version is newer than the stored digests. It
// forgets ref if it was deleted or no consumer needs it any more.
func (r *Reader) Reconcile(ctx context.Context, ref object.Ref) error {
	unmanaged, found := r.caches.Unmanaged[ref.Kind].Get(ref.Namespace, ref.Name)
	if !found || !r.Wanted(ref) {
		r.known.Delete(ref)
		return nil
	}
	if r.At(ref, unmanaged.ResourceVersion) != nil {
		return nil
	}
	current, err := r.reader.Describe(ctx, ref, r.key)
	if err != nil {
		return err
	}
	if current == nil {
		return nil // deleted: the cache will report it
	}
	before := r.Latest(ref)
	digests := digestsOf(current, before, r.Labels())
	r.known.Store(ref, digests)
	r.Done(ref, before)
	return nil
}

// digestsOf returns what is kept of an object that was read. before is the previous
// version, or nil.
func digestsOf(read, before *object.Digested, withLabels bool) *object.Digested {
	meta := metav1.ObjectMeta{
		Namespace: read.Namespace, Name: read.Name, UID: read.UID, ResourceVersion: read.ResourceVersion, CreationTimestamp: read.CreationTimestamp,
	}
	if withLabels {
		meta.Labels = object.Merged(read.Labels, nil) // must not be nil, see At
	}
	kept := object.NewDigested(meta, object.Common{Kind: read.Kind, Immutable: read.Immutable, Digests: read.Digests})
	kept.ChangedAt = changedAt(read, before)
	return kept
}

// changedAt returns when the data of an object became what it is; zero means unknown.
// The API server does not record the time of a write that only removes keys, and
// reports an earlier time.
func changedAt(read, before *object.Digested) time.Time {
	if before == nil || !lacksOnly(read.Digests, before.Digests) {
		return read.ChangedAt
	}
	if len(read.Digests) < len(before.Digests) || before.ChangedAt.IsZero() {
		return time.Time{}
	}
	return read.ChangedAt
}

// lacksOnly reports whether every key of now has the same value in before.
func lacksOnly(now, before object.Digests) bool {
	return !slices.ContainsFunc(now, func(k object.KeyDigest) bool {
		sum, found := before.Sum(k.Key)
		return !found || sum != k.Sum
	})
}
