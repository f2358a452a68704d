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
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
)

// readWorkers is how many objects are read at once.
const readWorkers = 8

// Reader keep digests of the objects that are neither sources nor clones, and
// that an owner, or a section of the configuration, asks about. Each is read once for each of its resourceVersions,
// however many consume it; its data is digested at once and let go of. One that
// cannot be read is tried again for ever, and delays nothing else.
type Reader struct {
	reader kube.Reader
	caches *informers.Caches
	key    *digestkey.Key
	Queue  *queue.Runner[object.Ref]
	// wanted reports whether anybody still asks about an object.
	Wanted func(object.Ref) bool
	// done is called after an object was read; before is what it was when it was
	// read the last time, nil the first time.
	Done func(ref object.Ref, before *object.Digested)
	// labels reports whether anybody asks for the labels of objects.
	Labels func() bool

	known sync.Map // from object.Ref to *object.Digested
}

// NewReader allocates a Reader. The caller sets Wanted and Done before Queue runs.
func NewReader(clients *kube.Clients, caches *informers.Caches, key *digestkey.Key, registry *prometheus.Registry, log *zap.Logger) *Reader {
	r := &Reader{reader: kube.NewReader(clients), caches: caches, key: key, Labels: func() bool { return false }}
	r.Queue = queue.New(queue.Options{Name: "reload-reads", Workers: readWorkers, Log: log, Registry: registry}, r.Reconcile)
	return r
}

// Get returns the object as it is at resourceVersion or later. When that is not
// known it returns nil, and has it read.
func (r *Reader) Get(ref object.Ref, resourceVersion string) *object.Digested {
	if known := r.At(ref, resourceVersion); known != nil {
		return known
	}
	r.Queue.Fresh(ref)
	return nil
}

// Latest is the object as it was last read; nil if it was not.
func (r *Reader) Latest(ref object.Ref) *object.Digested {
	value, _ := r.known.Load(ref)
	known, _ := value.(*object.Digested)
	return known
}

// At is get without the reading.
func (r *Reader) At(ref object.Ref, resourceVersion string) *object.Digested {
	known := r.Latest(ref)
	switch {
	case known == nil, known.ResourceVersion != resourceVersion && !object.NewerThan(known.ResourceVersion, resourceVersion):
		return nil
	case known.Labels == nil && r.Labels():
		return nil // it was read before anybody asked for them
	default:
		return known
	}
}

// Review has ref read when it has changed, or forgotten when nobody asks about
// it any more.
func (r *Reader) Review(ref object.Ref) {
	if _, known := r.known.Load(ref); known || r.Wanted(ref) {
		r.Queue.Fresh(ref)
	}
}

// ReviewOf reviews what a consumer is known to have asked about, and may not any
// more.
func (r *Reader) ReviewOf(namespace string, references []refs.Reference, theirs *optin.ThirdParty) {
	for _, reference := range references {
		r.reviewKnown(object.Ref{Kind: reference.Kind, Namespace: namespace, Name: reference.Name})
	}
	for _, ref := range theirs.Lists() {
		r.reviewKnown(ref)
	}
	if len(theirs.Patterns()) == 0 {
		return
	}
	r.ReviewAll(func(ref object.Ref) bool { return ref.Namespace == namespace })
}

// ReviewAll reviews those that are known and that which says so, after a change
// of who asks.
func (r *Reader) ReviewAll(which func(object.Ref) bool) {
	r.known.Range(func(key, _ any) bool {
		if ref, is := key.(object.Ref); is && which(ref) {
			r.Queue.Bulk(ref)
		}
		return true
	})
}

func (r *Reader) reviewKnown(ref object.Ref) {
	if _, known := r.known.Load(ref); known {
		r.Queue.Bulk(ref)
	}
}

// Reconcile reads ref if its cached version is newer than the stored digests. It
// forgets ref if it was deleted or no consumer needs it any more.
func (r *Reader) Reconcile(ctx context.Context, ref object.Ref) error {
	foreign, found := r.caches.Unmanaged[ref.Kind].Get(ref.Namespace, ref.Name)
	if !found || !r.Wanted(ref) {
		r.known.Delete(ref)
		return nil
	}
	if r.At(ref, foreign.ResourceVersion) != nil {
		return nil
	}
	current, err := r.reader.Describe(ctx, ref, r.key)
	if err != nil {
		return err
	}
	if current == nil {
		return nil // deleted: the cache will tell
	}
	before := r.Latest(ref)
	digests := digestsOf(current, before)
	if r.Labels() {
		digests.Labels = object.Merged(current.Labels, map[string]string{}) // not nil
	}
	r.known.Store(ref, digests)
	r.Done(ref, before)
	return nil
}

// digestsOf is what is kept of an object that was read; before is what was kept
// of it until then, or nil.
func digestsOf(read, before *object.Digested) *object.Digested {
	return &object.Digested{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: read.Namespace, Name: read.Name, UID: read.UID, ResourceVersion: read.ResourceVersion, CreationTimestamp: read.CreationTimestamp,
		},
		Kind: read.Kind, Immutable: read.Immutable, Digests: read.Digests, ChangedAt: changedAt(read, before),
	}
}

// ChangedAt is when the data of an object became what it is; zero is not known.
// The API server says it of a write that takes over fields: where nothing but
// keys went, it tells the time of an earlier one.
func changedAt(read, before *object.Digested) time.Time {
	if before == nil || !lacksOnly(read.Digests, before.Digests) {
		return read.ChangedAt
	}
	if len(read.Digests) < len(before.Digests) || before.ChangedAt.IsZero() {
		return time.Time{}
	}
	return read.ChangedAt
}

// lacksOnly reports whether now holds nothing that before did not.
func lacksOnly(now, before object.Digests) bool {
	return !slices.ContainsFunc(now, func(k object.KeyDigest) bool {
		sum, found := before.Sum(k.Key)
		return !found || sum != k.Sum
	})
}
