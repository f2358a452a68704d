package fields

import (
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// SetTarget is what the cache keeps of an object whose fields a rule sets: digests of
// those fields, but no values.
type SetTarget struct {
	metav1.ObjectMeta
	Info   *kinds.Info
	Values map[string]digest.Sum
	// Set lists the fields that each rule has set.
	Set map[string][]string
}

// LabelSet returns the labels of the object.
func (t *SetTarget) LabelSet() labels.Set { return t.Labels }

// key returns the key of t as a target of rule.
func (t *SetTarget) key(rule string) targetKey {
	return targetKey{rule: rule, kind: t.Info.ConsumerKind(), namespace: t.Namespace, name: t.Name}
}

// targetKey identifies one target of one rule, which is reconciled by itself.
type targetKey struct {
	rule            string
	kind            kinds.Kind
	namespace, name string
}

// String formats the key as Kind/namespace/name of rule.
func (k targetKey) String() string {
	return string(k.kind) + "/" + k.namespace + "/" + k.name + " of rule " + k.rule
}

// ByNamespace is the index from a namespace to the targets in it.
const ByNamespace = "namespace"

// NewSetTargets creates the cache of targets whose fields are set. A nil definitions
// disables the watch of CustomResourceDefinitions.
func NewSetTargets(
	clients *kube.Clients, definitions *informers.View[*informers.Definition], live *rules.Live[spec.Rule], key *digestkey.Key, log *zap.Logger,
) *informers.Optional[*SetTarget] {
	wanted := func() []informers.OptionalKind[*SetTarget] { return SetKinds(live.Load(), key) }
	return informers.NewOptional("targets", clients, definitions, log, wanted, map[string]func(*SetTarget) []string{
		ByNamespace: func(t *SetTarget) []string { return []string{t.Namespace} },
	})
}

// SetKinds returns the kinds whose fields the rules set. Which fields decides what is
// kept of each object.
func SetKinds(set *rules.Set[spec.Rule], key *digestkey.Key) []informers.OptionalKind[*SetTarget] {
	infos := map[kinds.Kind]*kinds.Info{}
	paths := map[kinds.Kind][]string{}
	var order []kinds.Kind
	for _, t := range spec.TargetsOf(set) {
		if t.Annotates() {
			continue
		}
		kind := t.Info.ConsumerKind()
		if infos[kind] == nil {
			infos[kind] = t.Info
			order = append(order, kind)
		}
		for _, field := range t.Fields {
			paths[kind] = append(paths[kind], field.Name())
		}
	}
	kinds := make([]informers.OptionalKind[*SetTarget], 0, len(order))
	for _, kind := range order {
		slices.Sort(paths[kind])
		paths := slices.Compact(paths[kind])
		kinds = append(kinds, informers.OptionalKind[*SetTarget]{
			GroupVersionKind: infos[kind].GroupVersionKind, Keep: keepTarget(infos[kind], paths, key), Shape: strings.Join(paths, ","),
		})
	}
	return kinds
}

func keepTarget(info *kinds.Info, paths []string, key *digestkey.Key) func(any) (*SetTarget, error) {
	return func(obj any) (*SetTarget, error) {
		custom, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("object of type %T is no custom resource", obj)
		}
		hasher, err := key.Hasher()
		if err != nil {
			return nil, err
		}
		meta := workload.MetaOf(custom)
		kept := &SetTarget{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
				Labels: meta.Labels, DeletionTimestamp: meta.DeletionTimestamp,
			},
			Info: info, Values: map[string]digest.Sum{}, Set: mark.SetFields(meta.Annotations),
		}
		for _, path := range paths {
			parsed, _ := spec.ParseFieldPath(path) // compiled rules have valid paths
			if text, found := parsed.Text(custom.Object); found {
				kept.Values[path] = object.DigestText(hasher, text)
			}
		}
		return kept, nil
	}
}
