package survey

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"github.com/headwater-k8s/headwater/internal/configmap"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// records is a ConfigMap in Headwater's own namespace with a T for each rule name, and
// its cache.
type records[T any] struct {
	View   *informers.View[*Recorded[T]]
	Ref    object.Ref
	client kubernetes.Interface
}

// Recorded is the cached content of such a ConfigMap.
type Recorded[T any] struct {
	metav1.ObjectMeta
	ByRule map[string]T
	// Immutable is true if nobody can write to it.
	Immutable bool
}

// maxInvalid is how many entries that are not valid the log names.
const maxInvalid = 5

// entries says how a ConfigMap of records is read.
type entries[T any] struct {
	// name is that of the ConfigMap, and cache that of its cache.
	name, cache string
	decode      func(text string, into *T) error
	// advice is what the log says about entries that are not valid; empty if no command
	// writes them.
	advice string
}

// newRecords adds the cache of a ConfigMap to caches.
func newRecords[T any](clients *kube.Clients, caches *informers.Caches, ownNamespace string, of entries[T], log *zap.Logger) (*records[T], error) {
	r := &records[T]{Ref: object.Ref{Kind: object.ConfigMap, Namespace: ownNamespace, Name: of.name}, client: clients.Typed}
	informer := coreinformers.NewFilteredConfigMapInformer(clients.Typed, ownNamespace, 0, cache.Indexers{}, informers.Named(of.name))
	var err error
	r.View, err = informers.NewView(of.cache, informer, log, func(obj any) (*Recorded[T], error) {
		configMap, ok := obj.(*corev1.ConfigMap)
		if !ok {
			return nil, fmt.Errorf("object of type %T is not a ConfigMap", obj)
		}
		byRule, invalid := decodeAll(configMap.Data, of.decode)
		if len(invalid) > 0 && of.advice != "" {
			log.Warn(of.advice, zap.Int("entries", len(invalid)), zap.Strings("first", slices.Sorted(slices.Values(invalid))[:min(len(invalid), maxInvalid)]))
		}
		kept := &Recorded[T]{configMap.ObjectMeta, byRule, configMap.Immutable != nil && *configMap.Immutable}
		kept.ManagedFields = nil
		return kept, nil
	})
	if err != nil {
		return nil, err
	}
	caches.Add(r.View, informers.Always)
	return r, nil
}

// decodeAll returns the valid entries, and the rules of the others.
func decodeAll[T any](data map[string]string, decode func(string, *T) error) (byRule map[string]T, invalid []string) {
	byRule = map[string]T{}
	for rule, text := range data {
		var entry T
		if decode(text, &entry) != nil {
			invalid = append(invalid, rule)
			continue
		}
		byRule[rule] = entry
	}
	return byRule, invalid
}

func decodeJSON[T any](text string, into *T) error { return json.Unmarshal([]byte(text), into) }

// isRead reports whether the ConfigMap has been read since this process began.
func (r *records[T]) isRead() bool { return r.View.HasSynced() }

// All returns the cached entries by rule; nil if the ConfigMap does not exist, or has not been read.
func (r *records[T]) All() map[string]T {
	all, found := r.View.Get(r.Ref.Namespace, r.Ref.Name)
	if !found {
		return nil
	}
	return all.ByRule
}

// Of returns the cached entry of rule; zero if there is none.
func (r *records[T]) Of(rule string) T { return r.All()[rule] }

// release recreates the ConfigMap if somebody made it immutable: nobody could request
// anything, for ever.
func (r *records[T]) release(ctx context.Context, log *zap.Logger) error {
	if all, found := r.View.Get(r.Ref.Namespace, r.Ref.Name); !found || !all.Immutable {
		return nil
	}
	log.Warn("recreating a ConfigMap that somebody made immutable", zap.Stringer("object", r.Ref))
	store := configmap.Store{Client: r.client, Namespace: r.Ref.Namespace, Name: r.Ref.Name}
	data, err := store.Read(ctx)
	if err != nil {
		return err
	}
	return store.Write(ctx, data)
}

// create creates the ConfigMap if it does not exist.
func (r *records[T]) create(ctx context.Context, data map[string]string) error {
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.Ref.Name, Namespace: r.Ref.Namespace, Labels: mark.ManagedLabels()}, Data: data}
	_, err := r.client.CoreV1().ConfigMaps(r.Ref.Namespace).Create(ctx, created, metav1.CreateOptions{FieldManager: mark.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ConfigMap %s/%s: %w", r.Ref.Namespace, r.Ref.Name, err)
	}
	return nil
}

// changeEntry applies change to the entry of rule in a ConfigMap of Headwater's own
// namespace, as the API server holds it. It calls change again if somebody else wrote
// meanwhile. If change changes nothing, nothing is written; an empty entry is deleted.
func changeEntry[T interface{ Empty() bool }](ctx context.Context, client kubernetes.Interface, ownNamespace, name, rule string, change func(T) T) error {
	configMaps := client.CoreV1().ConfigMaps(ownNamespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := configMaps.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var stored T
		_ = decodeJSON(current.Data[rule], &stored) // nobody can act on what is not valid, so it is replaced
		changed := change(stored)
		after, err := json.Marshal(changed)
		if err != nil {
			return err
		}
		before, exists := current.Data[rule]
		switch {
		case changed.Empty() && !exists, !changed.Empty() && string(after) == before:
			return nil
		case changed.Empty():
			delete(current.Data, rule)
		case current.Data == nil:
			current.Data = map[string]string{rule: string(after)}
		default:
			current.Data[rule] = string(after)
		}
		_, err = configMaps.Update(ctx, current, metav1.UpdateOptions{FieldManager: mark.FieldManager})
		return err
	})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w; Headwater's leader creates it: does a replica lead? See headwater status", err)
	}
	if err != nil {
		return fmt.Errorf("write to ConfigMap %s/%s: %w", ownNamespace, name, err)
	}
	return nil
}

func (r *removals) store() configmap.Store {
	return configmap.Store{Client: r.client, Namespace: r.Ref.Namespace, Name: RemovalsName}
}
