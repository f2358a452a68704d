package gather

import (
	"strings"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

const (
	// byReference is the index from object.Ref.String to its consumers.
	byReference = "reference"
	// byPattern is the index from a namespace to the workloads that list objects in it
	// by patterns.
	byPattern = "pattern"
	// byBorrowed is the index from a workload's key to the Argo Rollouts that use its
	// pod template.
	byBorrowed = "borrowed"
	// byOwner is the index from the UID of a controller to what it controls.
	byOwner = "owner"
	// ByTarget is the index from a namespace to the annotated targets in it.
	ByTarget = "target"
)

// Consumers are the caches of all objects that can reference a Secret or ConfigMap.
type Consumers struct {
	Workloads map[kinds.Kind]*informers.View[*workload.Workload]
	// Optional holds workloads of kinds that a cluster may not have.
	Optional *informers.Optional[*workload.Workload]
	// Owners holds the metadata of further owners of workloads, if Headwater may read it.
	Owners *informers.Optional[*workload.Workload]
	Pods   *informers.View[*workload.Pod]
	// Sections returns the configured sections; nil if there are none.
	Sections func() []spec.Section

	namespaces *informers.View[*informers.Namespace]
}

// NewConsumers creates the caches and adds them to caches, which starts them once
// needed returns true. optional returns the kinds to cache that a cluster may not have.
// A nil definitions disables the watch for such kinds. keeps must be the filter that
// optional uses.
func NewConsumers(
	clients *kube.Clients, caches *informers.Caches, needed func() bool,
	optional func() []informers.OptionalKind[*workload.Workload], definitions *informers.View[*informers.Definition], keeps workload.KeptReferences, log *zap.Logger,
) (*Consumers, error) {
	c := &Consumers{Workloads: map[kinds.Kind]*informers.View[*workload.Workload]{}, namespaces: caches.Namespaces}
	above := &ownerKinds{declared: optional, found: map[kinds.Kind]*kinds.Info{}}
	indexes := workloadIndexes()
	owned := indexes[byOwner]
	indexes[byOwner] = func(w *workload.Workload) []string {
		above.note(w.Owner)
		return owned(w)
	}
	c.Owners = informers.NewOptional("owners", clients, definitions, log, above.wanted, map[string]func(*workload.Workload) []string{byOwner: indexes[byOwner]})
	above.noted = c.Owners.Recheck
	for kind, informer := range workloadInformers(clients.Typed, clients.Scope.Namespace) {
		view, err := informers.NewView("workloads: "+strings.ToLower(string(kind))+"s", informer, log,
			func(obj any) (*workload.Workload, error) { return workload.KeepRolling(obj, keeps) })
		if err != nil {
			return nil, err
		}
		for index, values := range indexes {
			if err := view.AddIndex(index, values); err != nil {
				return nil, err
			}
		}
		c.Workloads[kind] = view
		caches.AddApart(view, clients.Scope.Needed(strings.ToLower(string(kind))+"s", needed))
	}
	c.Optional = informers.NewOptional("workloads", clients, definitions, log, optional, indexes)
	caches.AddApart(c.Optional, needed)
	pods, err := informers.NewView("pods", podInformer(clients.Typed, clients.Scope.Namespace), log, func(obj any) (*workload.Pod, error) { return workload.KeepPod(obj, keeps) })
	if err != nil {
		return nil, err
	}
	if err := pods.AddIndex(byReference, func(p *workload.Pod) []string { return indexed(ObjectsOf(p.Namespace, p.References, nil)) }); err != nil {
		return nil, err
	}
	c.Pods = pods
	caches.AddApart(pods, needed)
	caches.AddApart(c.Owners, needed) // last: the others tell it which kinds there are
	return c, nil
}

// Cached returns the names of the caches, but those of kinds that cannot be read.
func (c *Consumers) Cached(scope kube.Scope) []string {
	names := append(c.Optional.Full(), c.Pods.Name())
	for _, kind := range kinds.WorkloadKinds() {
		if scope.Reads(kinds.Typed[kind].Resource) {
			names = append(names, c.Workloads[kind].Name())
		}
	}
	return names
}

// CustomKinds returns a function that lists the kinds of workloads and annotated
// targets that a cluster may not have, from the current settings and rules.
func CustomKinds(declared func() []kinds.WorkloadKind, live *rules.Live[spec.Rule], keeps workload.KeptReferences) func() []informers.OptionalKind[*workload.Workload] {
	return func() []informers.OptionalKind[*workload.Workload] {
		var found []informers.OptionalKind[*workload.Workload]
		seen := map[kinds.Kind]bool{}
		for _, info := range append(kinds.Optional(declared()), AnnotatedKinds(live.Load())...) {
			if !seen[info.ConsumerKind()] {
				seen[info.ConsumerKind()] = true
				found = append(found, informers.OptionalKind[*workload.Workload]{
					GroupVersionKind: info.GroupVersionKind, Keep: workload.KeepCustom(info, keeps), Shape: strings.Join(info.StampAt(), "."),
				})
			}
		}
		return found
	}
}

func workloadIndexes() map[string]func(*workload.Workload) []string {
	// value returns an index of the workloads that have a value.
	value := func(of func(*workload.Workload) (value string, has bool)) func(*workload.Workload) []string {
		return func(w *workload.Workload) []string {
			if value, has := of(w); has {
				return []string{value}
			}
			return nil
		}
	}
	return map[string]func(*workload.Workload) []string{
		byReference: func(w *workload.Workload) []string {
			return indexed(ObjectsOf(w.Namespace, w.References, w.ThirdParty))
		},
		byPattern: value(func(w *workload.Workload) (string, bool) { return w.Namespace, len(w.ThirdParty.Patterns()) > 0 }),
		byBorrowed: value(func(w *workload.Workload) (string, bool) {
			return ptr.Deref(w.TemplateFrom, kinds.Key{}).String(), w.TemplateFrom != nil
		}),
		byOwner: value(func(w *workload.Workload) (string, bool) {
			return string(ptr.Deref(w.Owner, workload.Owner{}).UID), w.Owner != nil
		}),
		ByTarget: value(func(w *workload.Workload) (string, bool) { return w.Namespace, w.IsTarget() }),
	}
}

func workloadInformers(client kubernetes.Interface, namespace string) map[kinds.Kind]cache.SharedIndexInformer {
	return map[kinds.Kind]cache.SharedIndexInformer{
		kinds.KindDeployment:  appsinformers.NewDeploymentInformer(client, namespace, 0, cache.Indexers{}),
		kinds.KindStatefulSet: appsinformers.NewStatefulSetInformer(client, namespace, 0, cache.Indexers{}),
		kinds.KindDaemonSet:   appsinformers.NewDaemonSetInformer(client, namespace, 0, cache.Indexers{}),
		kinds.KindCronJob:     batchinformers.NewCronJobInformer(client, namespace, 0, cache.Indexers{}),
	}
}

// podInformer does not watch pods without volumes on a node, so finished jobs use no
// memory.
func podInformer(client kubernetes.Interface, namespace string) cache.SharedIndexInformer {
	running := fields.AndSelectors(
		fields.OneTermNotEqualSelector("spec.nodeName", ""),
		fields.OneTermNotEqualSelector("status.phase", "Succeeded"),
		fields.OneTermNotEqualSelector("status.phase", "Failed"),
	).String()
	return coreinformers.NewFilteredPodInformer(client, namespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.FieldSelector = running })
}

// ObjectsOf returns the objects that a consumer references, or lists by name.
func ObjectsOf(namespace string, references []refs.Reference, thirdParty *optin.ThirdParty) []object.Ref {
	objects := thirdParty.Lists()
	for _, r := range references {
		objects = append(objects, object.Ref{Kind: r.Kind, Namespace: namespace, Name: r.Name})
	}
	return objects
}

// indexed returns the values under which a consumer of objects is indexed.
func indexed(objects []object.Ref) []string {
	values := make([]string, 0, len(objects))
	for _, ref := range objects {
		values = append(values, ref.String())
	}
	return values
}
