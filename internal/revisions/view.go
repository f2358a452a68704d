package revisions

import (
	"cmp"
	"fmt"
	"slices"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
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
	*Revision

	// Foreign is true if it was recorded with another digest key, as by another cluster whose
	// backup somebody restored here. It is in no history.
	Foreign bool

	// full is the whole object, as an update needs it.
	full *object.Full
}

// Key returns the history that the revision belongs to.
func (s *Stored) Key() Key { return Key{s.Rule, s.Source} }

// byHistory is the index from a Key to its revisions, byRule from a rule's name, and
// bySource from a source.
const (
	byHistory = "history"
	byRule    = "rule"
	bySource  = "source"
)

// View reads revisions from a cache.
type View struct {
	key   *digestkey.Key
	views map[object.Kind]*informers.View[*Stored]
}

// DigestKey returns the digest key of those it shows.
func (v *View) DigestKey() *digestkey.Key { return v.key }

// NewView returns a View. It adds its caches to caches, which must not run yet.
func NewView(clients *kube.Clients, caches *informers.Caches, key *digestkey.Key, ownNamespace string, log *zap.Logger) (*View, error) {
	v := &View{key: key, views: map[object.Kind]*informers.View[*Stored]{}}
	recorded := func(options *metav1.ListOptions) { options.LabelSelector = mark.Revision }
	for _, kind := range object.Kinds {
		view, err := informers.NewView(informers.RevisionsCache+kind.Resource(), informers.OfKind(clients, kind, ownNamespace, recorded), log, keep(key, log))
		if err != nil {
			return nil, err
		}
		err = view.AddIndex(byHistory, func(s *Stored) []string { return s.unlessForeign(s.Key().String()) })
		if err == nil {
			err = view.AddIndex(byRule, func(s *Stored) []string { return s.unlessForeign(s.Rule) })
		}
		if err == nil {
			err = view.AddIndex(bySource, func(s *Stored) []string { return []string{s.Source.String()} })
		}
		if err != nil {
			return nil, err
		}
		caches.Add(view, informers.Always)
		v.views[kind] = view
	}
	return v, nil
}

func keep(key *digestkey.Key, log *zap.Logger) func(any) (*Stored, error) {
	whole := informers.KeepWhole(key)
	return func(obj any) (*Stored, error) {
		full, err := whole(obj)
		if err != nil {
			return nil, err
		}
		full.ManagedFields = nil
		revision, ok := Parse(full)
		if !ok {
			return nil, fmt.Errorf("the label %s is not of a revision that Headwater recorded; delete the object", mark.Revision)
		}
		stored := &Stored{ObjectMeta: full.ObjectMeta, Revision: revision, full: full}
		if by, own := full.Labels[mark.DigestKey], key.ID(); by != "" && own != "" && by != own {
			stored.Foreign = true
			log.Warn("a revision was recorded with another digest key, so it is ignored: delete it, or restore that key", zap.Stringer("revision", full.Ref()))
		}
		return stored, nil
	}
}

func (s *Stored) unlessForeign(entry string) []string {
	if s.Foreign {
		return nil
	}
	return []string{entry}
}

// HasForeign reports whether foreign revisions say that they are of key.
func (v *View) HasForeign(key Key) bool {
	return slices.ContainsFunc(v.ofSource(key.Source), func(s *Stored) bool { return s.Foreign && s.Key() == key })
}

// ofSource returns the revisions of a source for every rule, also foreign ones.
func (v *View) ofSource(source object.Ref) []*Stored {
	view := v.views[source.Kind]
	if view == nil {
		return nil
	}
	return view.ByIndex(bySource, source.String())
}

// History returns the revisions of key, oldest first.
func (v *View) History(key Key) History { return HistoryOf(v.Stored(key)) }

// HistoryOf returns the revisions that stored records, oldest first.
func HistoryOf(stored []*Stored) History {
	history := make([]*Revision, 0, len(stored))
	for _, one := range stored {
		history = append(history, one.Revision)
	}
	return NewHistory(history)
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

// Any reports whether there is a revision for rule. Without revisions it costs nothing.
func (v *View) Any(rule string) bool {
	for _, kind := range object.Kinds {
		if v.views[kind].Has(byRule, rule) {
			return true
		}
	}
	return false
}

// Keys returns every history.
func (v *View) Keys() []Key { return v.keys((*informers.View[*Stored]).List) }

func (v *View) keys(list func(*informers.View[*Stored]) []*Stored) []Key {
	var keys []Key
	for _, kind := range object.Kinds {
		for _, stored := range list(v.views[kind]) {
			if !stored.Foreign && !slices.Contains(keys, stored.Key()) {
				keys = append(keys, stored.Key())
			}
		}
	}
	return keys
}

// OnChange calls handle for every revision and every change of one. A revision that another
// rule takes over leaves one history, and then comes into the other.
func (v *View) OnChange(handle func(informers.Change[*Stored])) (informers.Subscription, error) {
	handled := func(change informers.Change[*Stored]) {
		if !change.Added && !change.Deleted && change.Old.Key() != change.New.Key() {
			handle(informers.Change[*Stored]{Old: change.Old, Deleted: true})
			change = informers.Change[*Stored]{New: change.New, Added: true}
		}
		handle(change)
	}
	all := &informers.Subscriptions{}
	for _, kind := range object.Kinds {
		all.Add(v.views[kind].OnChange(handled))
	}
	return all, all.Err()
}

// RejectedBefore returns a revision of any rule for the source of key that has this content
// and was rejected; nil if there is none.
func (v *View) RejectedBefore(key Key, content object.Content, digests object.Digests) *Revision {
	for _, other := range v.KeysOfSource(key.Source) {
		if rejected := v.History(other).RejectedBefore(content, digests); rejected != nil {
			return rejected
		}
	}
	return nil
}

// KeysOfSource returns the histories of source, by rule.
func (v *View) KeysOfSource(source object.Ref) []Key {
	all := v.keys(func(view *informers.View[*Stored]) []*Stored { return view.ByIndex(bySource, source.String()) })
	slices.SortFunc(all, func(a, b Key) int { return cmp.Compare(a.Rule, b.Rule) })
	return all
}

// FirstFree returns the number of the first revision of key whose name, and all later ones,
// are free: another rule may have taken over an earlier history of that name, and foreign
// revisions may have such names.
func (v *View) FirstFree(key Key) int {
	free := 1
	for _, stored := range v.ofSource(key.Source) {
		if stored.RecordedAs(key) || stored.Key() == key {
			free = max(free, stored.Number+1)
		}
	}
	return free
}

// RecordedAs reports whether the revision was recorded for key, before its history may have
// been handed to another rule.
func (s *Stored) RecordedAs(key Key) bool { return s.Name == nameOf(key, s.Number) }
