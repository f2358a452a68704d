package revisions

import (
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// revisionID names a revision: it counts those of one source for one rule.
type revisionID struct {
	rule   string
	source object.Ref
	number int
}

// idOf returns the revision that clone was written from; ok is false if it names none.
func idOf(clone *object.Digested) (id revisionID, ok bool) {
	number, err := strconv.Atoi(clone.Annotations[mark.Revision])
	if err != nil {
		return revisionID{}, false
	}
	marks, readable := mark.Of(clone)
	return revisionID{marks.Rule, marks.Source, number}, readable
}

// The verdicts that matter here; see package delivery.
const (
	delivering = "Delivering"
	held       = "Held"
	delivered  = "Delivered"
)

// Revision is the cached part of the object that records a revision: no data.
type Revision struct {
	metav1.ObjectMeta

	id   revisionID
	kind object.Kind
	// verdict is mark.Verdict, and endedAt when it became that; zero while the revision is
	// under way.
	verdict string
	endedAt time.Time
	// known is mark.ConsumersKnown.
	known string
}

// ref returns the reference of the object.
func (r *Revision) ref() object.Ref {
	return object.Ref{Kind: r.kind, Namespace: r.Namespace, Name: r.Name}
}

// View is a cache of the recorded revisions in Headwater's namespace.
type View map[object.Kind]*informers.View[*Revision]

// NewView returns a View and adds its caches to caches, which start them once needed
// returns true.
func NewView(clients *kube.Clients, caches *informers.Caches, ownNamespace string, needed func() bool, log *zap.Logger) (View, error) {
	v := View{}
	recorded := func(options *metav1.ListOptions) { options.LabelSelector = mark.Revision }
	for _, kind := range object.Kinds {
		informer := metadatainformer.NewFilteredMetadataInformer(clients.Metadata, resourceOf(kind), ownNamespace, 0, cache.Indexers{}, recorded).Informer()
		keep := func(obj any) (*Revision, error) { return keepRevision(kind, obj) }
		view, err := informers.NewView("consumers of revisions: "+kind.Resource(), informer, log, keep)
		if err != nil {
			return nil, err
		}
		caches.Add(view, needed)
		v[kind] = view
	}
	return v, nil
}

func keepRevision(kind object.Kind, obj any) (*Revision, error) {
	meta, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("object of type %T has no metadata", obj)
	}
	annotations := meta.GetAnnotations()
	number, err := strconv.Atoi(meta.GetLabels()[mark.Revision])
	if err != nil {
		return nil, fmt.Errorf("the label %s is not a number", mark.Revision)
	}
	source, err := object.ParseRef(annotations[mark.Source])
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", mark.Source, err)
	}
	revision := &Revision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: meta.GetUID(), ResourceVersion: meta.GetResourceVersion(),
			CreationTimestamp: meta.GetCreationTimestamp(),
		},
		id: revisionID{annotations[mark.Rule], source, number}, kind: kind,
		verdict: annotations[mark.Verdict], known: annotations[mark.ConsumersKnown],
	}
	if !revision.underWay() {
		revision.endedAt = mark.WrittenAt(meta.GetManagedFields())
	}
	return revision, nil
}

// underWay reports whether the clones of r need reports.
func (r *Revision) underWay() bool { return r.verdict == delivering || r.verdict == held }

// undeliveredUntil returns when the last revision before id ended that was not
// delivered, of those from first on: now if one of them is under way, or if first is not
// among recorded; zero if all were delivered.
func undeliveredUntil(recorded []*Revision, first int, id revisionID, now time.Time) (until time.Time) {
	found := false
	for _, one := range recorded {
		if one.id.rule != id.rule || one.id.source != id.source || one.id.number < first || one.id.number >= id.number {
			continue
		}
		found = found || one.id.number == first
		switch {
		case one.underWay():
			return now
		case one.verdict != delivered && one.endedAt.After(until):
			until = one.endedAt
		}
	}
	if !found {
		return now
	}
	return until
}

// onChange calls handle for every revision and every change of one.
func (v View) onChange(handle func(informers.Change[*Revision]), all *informers.Subscriptions) error {
	for _, kind := range object.Kinds {
		if err := all.Add(v[kind].OnChange(handle)); err != nil {
			return err
		}
	}
	return nil
}
