package reload

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
)

// readWorkers is how many objects are read at once.
const readWorkers = 8

// reads keep digests of the objects that are neither sources nor clones, and
// that an owner, or a section of the configuration, asks about. Each is read once for each of its resourceVersions,
// however many consume it; its data is digested at once and let go of. One that
// cannot be read is tried again for ever, and delays nothing else.
type reads struct {
	reader kube.Reader
	caches *kube.Caches
	key    *kube.DigestKey
	queue  *queue.Runner[object.Ref]
	// wanted reports whether anybody still asks about an object.
	wanted func(object.Ref) bool
	// done is called after an object was read; before is what it was when it was
	// read the last time, nil the first time.
	done func(ref object.Ref, before *object.Digested)
	// labels reports whether anybody asks for the labels of objects.
	labels func() bool

	known sync.Map // from object.Ref to *object.Digested
}

func newReads(clients *kube.Clients, caches *kube.Caches, key *kube.DigestKey, registry *prometheus.Registry, log *zap.Logger) *reads {
	r := &reads{reader: kube.NewReader(clients), caches: caches, key: key, labels: func() bool { return false }}
	r.queue = queue.New(queue.Options{Name: "reload-reads", Workers: readWorkers, Log: log, Registry: registry}, r.reconcile)
	return r
}

// get returns the object as it is at resourceVersion or later. When that is not
// known it returns nil, and has it read.
func (r *reads) get(ref object.Ref, resourceVersion string) *object.Digested {
	if known := r.at(ref, resourceVersion); known != nil {
		return known
	}
	r.queue.Fresh(ref)
	return nil
}

// latest is the object as it was last read; nil if it was not.
func (r *reads) latest(ref object.Ref) *object.Digested {
	value, _ := r.known.Load(ref)
	known, _ := value.(*object.Digested)
	return known
}

// at is get without the reading.
func (r *reads) at(ref object.Ref, resourceVersion string) *object.Digested {
	known := r.latest(ref)
	switch {
	case known == nil, known.ResourceVersion != resourceVersion && !object.NewerThan(known.ResourceVersion, resourceVersion):
		return nil
	case known.Labels == nil && r.labels():
		return nil // it was read before anybody asked for them
	default:
		return known
	}
}

// review has ref read when it has changed, or forgotten when nobody asks about
// it any more.
func (r *reads) review(ref object.Ref) {
	if _, known := r.known.Load(ref); known || r.wanted(ref) {
		r.queue.Fresh(ref)
	}
}

// reviewOf reviews what a consumer is known to have asked about, and may not any
// more.
func (r *reads) reviewOf(namespace string, references []Reference, theirs *foreign) {
	for _, reference := range references {
		r.reviewKnown(object.Ref{Kind: reference.Kind, Namespace: namespace, Name: reference.Name})
	}
	for _, ref := range theirs.lists() {
		r.reviewKnown(ref)
	}
	if len(theirs.patterns()) == 0 {
		return
	}
	r.reviewAll(func(ref object.Ref) bool { return ref.Namespace == namespace })
}

// reviewAll reviews those that are known and that which says so, after a change
// of who asks.
func (r *reads) reviewAll(which func(object.Ref) bool) {
	r.known.Range(func(key, _ any) bool {
		if ref, is := key.(object.Ref); is && which(ref) {
			r.queue.Bulk(ref)
		}
		return true
	})
}

func (r *reads) reviewKnown(ref object.Ref) {
	if _, known := r.known.Load(ref); known {
		r.queue.Bulk(ref)
	}
}

func (r *reads) reconcile(ctx context.Context, ref object.Ref) error {
	foreign, found := r.caches.Foreign[ref.Kind].Get(ref.Namespace, ref.Name)
	if !found || !r.wanted(ref) {
		r.known.Delete(ref)
		return nil
	}
	if r.at(ref, foreign.ResourceVersion) != nil {
		return nil
	}
	current, err := r.reader.Describe(ctx, ref, r.key)
	if err != nil {
		return err
	}
	if current == nil {
		return nil // deleted: the cache will tell
	}
	before := r.latest(ref)
	digests := digestsOf(current, before)
	if r.labels() {
		digests.Labels = object.Merged(current.Labels, map[string]string{}) // not nil
	}
	r.known.Store(ref, digests)
	r.done(ref, before)
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

// changedAt is when the data of an object became what it is; zero is not known.
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
