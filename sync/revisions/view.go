package revisions

import (
	"fmt"
	"slices"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

// Key names a history: the revisions of one source for one rule.
type Key struct {
	Rule   string
	Source object.Ref
}

// String formats the key for messages.
func (k Key) String() string { return "rule " + k.Rule + ", source " + k.Source.String() }

// Stored is the cached form of an object that records a revision.
type Stored struct {
	metav1.ObjectMeta
	*delivery.Revision

	// full is the whole object, as an update needs it.
	full *object.Full
}

// Key returns the history that the revision belongs to.
func (s *Stored) Key() Key { return Key{s.Rule, s.Source} }

// byHistory is the index from a Key to its revisions, and byRule from a rule's name.
const (
	byHistory = "history"
	byRule    = "rule"
)

// View reads revisions from a cache.
type View struct {
	views map[object.Kind]*informers.View[*Stored]
}

// NewView returns a View. It adds its caches to caches, which must not run yet.
func NewView(clients *kube.Clients, caches *informers.Caches, key *digestkey.Key, ownNamespace string, log *zap.Logger) (*View, error) {
	v := &View{views: map[object.Kind]*informers.View[*Stored]{}}
	recorded := func(options *metav1.ListOptions) { options.LabelSelector = mark.Revision }
	for _, kind := range object.Kinds {
		var informer cache.SharedIndexInformer
		if kind == object.Secret {
			informer = coreinformers.NewFilteredSecretInformer(clients.Typed, ownNamespace, 0, cache.Indexers{}, recorded)
		} else {
			informer = coreinformers.NewFilteredConfigMapInformer(clients.Typed, ownNamespace, 0, cache.Indexers{}, recorded)
		}
		view, err := informers.NewView("revisions: "+kind.Resource(), informer, log, func(obj any) (*Stored, error) { return keep(obj, key) })
		if err != nil {
			return nil, err
		}
		err = view.AddIndex(byHistory, func(s *Stored) []string { return []string{s.Key().String()} })
		if err == nil {
			err = view.AddIndex(byRule, func(s *Stored) []string { return []string{s.Rule} })
		}
		if err != nil {
			return nil, err
		}
		caches.Add(view, informers.Always)
		v.views[kind] = view
	}
	return v, nil
}

func keep(obj any, key *digestkey.Key) (*Stored, error) {
	full, err := object.FromAPI(obj)
	if err != nil {
		return nil, err
	}
	hasher, err := key.Hasher()
	if err != nil {
		return nil, err
	}
	full.ManagedFields = nil
	full.Digests = object.Digest(hasher, full.Content)
	revision, ok := delivery.Parse(full)
	if !ok {
		return nil, fmt.Errorf("the label %s is not of a revision that Headwater recorded; delete the object", mark.Revision)
	}
	return &Stored{ObjectMeta: full.ObjectMeta, Revision: revision, full: full}, nil
}

// History returns the revisions of key, oldest first.
func (v *View) History(key Key) delivery.History { return HistoryOf(v.Stored(key)) }

// HistoryOf returns the revisions that stored records, oldest first.
func HistoryOf(stored []*Stored) delivery.History {
	history := make([]*delivery.Revision, 0, len(stored))
	for _, one := range stored {
		history = append(history, one.Revision)
	}
	return delivery.NewHistory(history)
}

// Stored returns the objects that record the revisions of key, in no order.
func (v *View) Stored(key Key) []*Stored {
	view := v.views[key.Source.Kind]
	if view == nil {
		return nil
	}
	return view.ByIndex(byHistory, key.String())
}

// KeysOf returns the histories of rule.
func (v *View) KeysOf(rule string) []Key {
	return v.keys(func(view *informers.View[*Stored]) []*Stored { return view.ByIndex(byRule, rule) })
}

// Keys returns every history.
func (v *View) Keys() []Key { return v.keys((*informers.View[*Stored]).List) }

func (v *View) keys(list func(*informers.View[*Stored]) []*Stored) []Key {
	var keys []Key
	for _, kind := range object.Kinds {
		for _, stored := range list(v.views[kind]) {
			if !slices.Contains(keys, stored.Key()) {
				keys = append(keys, stored.Key())
			}
		}
	}
	return keys
}

// OnChange calls handle for every revision and every change of one.
func (v *View) OnChange(handle func(informers.Change[*Stored])) (all informers.Subscriptions, err error) {
	for _, kind := range object.Kinds {
		if err := all.Add(v.views[kind].OnChange(handle)); err != nil {
			return all, err
		}
	}
	return all, nil
}
