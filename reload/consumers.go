package reload

import (
	"slices"
	"strings"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// byReference is the index from object.Ref.String to its consumers.
const byReference = "reference"

// workloadKinds is the order in which workloads are listed.
func workloadKinds() []Kind {
	return []Kind{KindDeployment, KindStatefulSet, KindDaemonSet, KindCronJob}
}

// key names one consumer: the smallest unit that can fail alone.
type key struct {
	kind            Kind
	namespace, name string
}

// String formats the key as Kind/namespace/name.
func (k key) String() string { return string(k.kind) + "/" + k.namespace + "/" + k.name }

// consumers are the caches of everything that can reference an object.
type consumers struct {
	workloads map[Kind]*kube.View[*Workload]
	// optional holds the workloads of kinds that a cluster may lack.
	optional *kube.Optional[*Workload]
	pods     *kube.View[*Pod]
}

// newConsumers adds its caches to caches, which starts them as soon as needed
// says so. Of the kinds that a cluster may lack those that optional returns are
// cached; definitions may be nil where nobody stays to see them come and go.
func newConsumers(
	clients *kube.Clients, caches *kube.Caches, needed func() bool,
	optional func() []kube.OptionalKind[*Workload], definitions *kube.View[*kube.Definition], log *zap.Logger,
) (*consumers, error) {
	c := &consumers{workloads: map[Kind]*kube.View[*Workload]{}}
	for kind, informer := range workloadInformers(clients.Typed) {
		view, err := kube.NewView("workloads: "+strings.ToLower(string(kind))+"s", informer, log, keepWorkload)
		if err != nil {
			return nil, err
		}
		for index, values := range workloadIndexes() {
			if err := view.AddIndex(index, values); err != nil {
				return nil, err
			}
		}
		c.workloads[kind] = view
		caches.Add(view, needed)
	}
	c.optional = kube.NewOptional("workloads", clients, definitions, log, optional, workloadIndexes())
	caches.Add(c.optional, needed)
	pods, err := kube.NewView("pods", podInformer(clients.Typed), log, keepPod)
	if err != nil {
		return nil, err
	}
	if err := pods.AddIndex(byReference, func(p *Pod) []string { return indexValues(p.Namespace, p.References) }); err != nil {
		return nil, err
	}
	c.pods = pods
	caches.Add(pods, needed)
	return c, nil
}

// customKinds are the kinds of workloads and of annotated targets that a cluster
// may lack.
func customKinds(declared []WorkloadKind, live *rules.Live[Rule]) func() []kube.OptionalKind[*Workload] {
	return func() []kube.OptionalKind[*Workload] {
		var kinds []kube.OptionalKind[*Workload]
		seen := map[Kind]bool{}
		for _, form := range append(optionalForms(declared), annotatedKinds(live.Load())...) {
			if !seen[form.kind()] {
				seen[form.kind()] = true
				kinds = append(kinds, kube.OptionalKind[*Workload]{GroupVersionKind: form.GroupVersionKind, Keep: keepCustom(form)})
			}
		}
		return kinds
	}
}

func workloadIndexes() map[string]func(*Workload) []string {
	return map[string]func(*Workload) []string{
		byReference: func(w *Workload) []string { return indexValues(w.Namespace, w.References) },
		byOwner:     ownerValues,
		byTarget:    targetValues,
	}
}

func workloadInformers(client kubernetes.Interface) map[Kind]cache.SharedIndexInformer {
	return map[Kind]cache.SharedIndexInformer{
		KindDeployment:  appsinformers.NewDeploymentInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}),
		KindStatefulSet: appsinformers.NewStatefulSetInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}),
		KindDaemonSet:   appsinformers.NewDaemonSetInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}),
		KindCronJob:     batchinformers.NewCronJobInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}),
	}
}

// podInformer leaves the pods that have no volumes on a node to the API
// server, so that finished jobs cost no memory here.
func podInformer(client kubernetes.Interface) cache.SharedIndexInformer {
	running := fields.AndSelectors(
		fields.OneTermNotEqualSelector("spec.nodeName", ""),
		fields.OneTermNotEqualSelector("status.phase", "Succeeded"),
		fields.OneTermNotEqualSelector("status.phase", "Failed"),
	).String()
	return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.FieldSelector = running })
}

func indexValues(namespace string, references []Reference) []string {
	values := make([]string, 0, len(references))
	for _, r := range references {
		values = append(values, object.Ref{Kind: r.Kind, Namespace: namespace, Name: r.Name}.String())
	}
	return values
}

// of returns the consumers of ref: of the workloads those that are to be
// stamped for it.
func (c *consumers) of(ref object.Ref) (workloads, pods []key) {
	for _, w := range c.byIndex(byReference, ref.String()) {
		if k := c.topOf(w).top.key(); !slices.Contains(workloads, k) {
			workloads = append(workloads, k)
		}
	}
	for _, p := range c.pods.ByIndex(byReference, ref.String()) {
		pods = append(pods, p.key())
	}
	return workloads, pods
}

// byIndex returns the workloads of every kind that have value in index.
func (c *consumers) byIndex(index, value string) []*Workload {
	var found []*Workload
	for _, kind := range workloadKinds() {
		found = append(found, c.workloads[kind].ByIndex(index, value)...)
	}
	return append(found, c.optional.ByIndex(index, value)...)
}

// all returns every consumer, workloads first.
func (c *consumers) all() []key {
	var workloads []*Workload
	for _, kind := range workloadKinds() {
		workloads = append(workloads, c.workloads[kind].List()...)
	}
	var keys []key
	for _, w := range append(workloads, c.optional.List()...) {
		if w.relevant() {
			keys = append(keys, w.key())
		}
	}
	for _, p := range c.pods.List() {
		if p.relevant() {
			keys = append(keys, p.key())
		}
	}
	return keys
}

// workload returns the workload that k names.
func (c *consumers) workload(k key) (*Workload, bool) {
	if view, every := c.workloads[k.kind]; every {
		return view.Get(k.namespace, k.name)
	}
	return c.optional.Get(k.kind.groupKind(), k.namespace, k.name)
}

// ownerOf returns the workload whose pod template pod was made from.
func (c *consumers) ownerOf(pod *Pod) (*Workload, bool) {
	if pod.OwnerKind == "" {
		return nil, false
	}
	owner, found := c.workload(key{pod.OwnerKind, pod.Namespace, pod.OwnerName})
	if found && owner.Borrows != nil {
		return c.workload(*owner.Borrows)
	}
	return owner, found
}

func (w *Workload) key() key { return key{w.Kind, w.Namespace, w.Name} }

// relevant reports whether there may be something to do about w, or about what
// it controls.
func (w *Workload) relevant() bool {
	return len(w.References) > 0 || len(w.Annotations) > 0 || w.Form != nil
}

func (p *Pod) key() key { return key{KindPod, p.Namespace, p.Name} }

func (p *Pod) relevant() bool { return len(p.References) > 0 }
