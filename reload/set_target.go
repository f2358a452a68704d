package reload

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
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// SetTarget is what is kept of an object whose fields some rule sets: no value
// of it, but digests of the texts in those fields.
type SetTarget struct {
	metav1.ObjectMeta
	Form   *Form
	Values map[string]digest.Sum
	// Set are the fields that each rule has set.
	Set map[string][]string
}

func (t *SetTarget) labels() labels.Set { return t.Labels }

// key names t among the targets of rule.
func (t *SetTarget) key(rule string) targetKey {
	return targetKey{rule: rule, kind: t.Form.kind(), namespace: t.Namespace, name: t.Name}
}

// targetKey names one target of one rule: the smallest unit that can fail alone.
type targetKey struct {
	rule            string
	kind            Kind
	namespace, name string
}

// String formats the key as Kind/namespace/name of rule.
func (k targetKey) String() string {
	return string(k.kind) + "/" + k.namespace + "/" + k.name + " of rule " + k.rule
}

// byNamespace is the index from a namespace to the targets in it.
const byNamespace = "namespace"

// newSetTargets caches the targets whose fields are set; definitions may be nil,
// as for consumers.
func newSetTargets(
	clients *kube.Clients, definitions *kube.View[*kube.Definition], live *rules.Live[Rule], key *kube.DigestKey, log *zap.Logger,
) *kube.Optional[*SetTarget] {
	wanted := func() []kube.OptionalKind[*SetTarget] { return setKinds(live.Load(), key) }
	return kube.NewOptional("targets", clients, definitions, log, wanted, map[string]func(*SetTarget) []string{
		byNamespace: func(t *SetTarget) []string { return []string{t.Namespace} },
	})
}

// setKinds are the kinds whose fields the rules set. What is kept of an object
// depends on the fields.
func setKinds(set *rules.Set[Rule], key *kube.DigestKey) []kube.OptionalKind[*SetTarget] {
	forms := map[Kind]*Form{}
	paths := map[Kind][]string{}
	var order []Kind
	for _, t := range targetsOf(set) {
		if t.annotates() {
			continue
		}
		kind := t.form.kind()
		if forms[kind] == nil {
			forms[kind] = t.form
			order = append(order, kind)
		}
		for _, field := range t.fields {
			paths[kind] = append(paths[kind], field.name())
		}
	}
	kinds := make([]kube.OptionalKind[*SetTarget], 0, len(order))
	for _, kind := range order {
		slices.Sort(paths[kind])
		paths := slices.Compact(paths[kind])
		kinds = append(kinds, kube.OptionalKind[*SetTarget]{
			GroupVersionKind: forms[kind].GroupVersionKind, Keep: keepTarget(forms[kind], paths, key), Shape: strings.Join(paths, ","),
		})
	}
	return kinds
}

func keepTarget(form *Form, paths []string, key *kube.DigestKey) func(any) (*SetTarget, error) {
	return func(obj any) (*SetTarget, error) {
		custom, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("object of type %T is no custom resource", obj)
		}
		hasher, err := key.Hasher()
		if err != nil {
			return nil, err
		}
		meta := metaOf(custom)
		kept := &SetTarget{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
				Labels: meta.Labels, DeletionTimestamp: meta.DeletionTimestamp,
			},
			Form: form, Values: map[string]digest.Sum{}, Set: mark.SetFields(meta.Annotations),
		}
		for _, path := range paths {
			parsed, _ := parseFieldPath(path) // it is one that was compiled
			if text, found := parsed.text(custom.Object); found {
				kept.Values[path] = object.DigestText(hasher, text)
			}
		}
		return kept, nil
	}
}
