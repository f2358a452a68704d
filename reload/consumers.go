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
)

const (
	// byReference is the index from object.Ref.String to its consumers.
	byReference = "reference"
	// byPattern is the index from a namespace to the workloads whose owners list
	// objects of it by patterns.
	byPattern = "pattern"
)

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
	pods      *kube.View[*Pod]
}

// newConsumers adds its caches to caches, which starts them as soon as needed
// says so.
func newConsumers(clients *kube.Clients, caches *kube.Caches, needed func() bool, log *zap.Logger) (*consumers, error) {
	c := &consumers{workloads: map[Kind]*kube.View[*Workload]{}}
	for kind, informer := range workloadInformers(clients.Typed) {
		view, err := kube.NewView("workloads: "+strings.ToLower(string(kind))+"s", informer, log, keepRolling)
		if err != nil {
			return nil, err
		}
		if err := indexWorkloads(view); err != nil {
			return nil, err
		}
		c.workloads[kind] = view
		caches.Add(view, needed)
	}
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

func indexWorkloads(view *kube.View[*Workload]) error {
	err := view.AddIndex(byReference, func(w *Workload) []string {
		values := indexValues(w.Namespace, w.References)
		for _, ref := range w.foreign.lists() {
			values = append(values, ref.String())
		}
		return values
	})
	if err != nil {
		return err
	}
	return view.AddIndex(byPattern, func(w *Workload) []string {
		if len(w.foreign.patterns()) == 0 {
			return nil
		}
		return []string{w.Namespace}
	})
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

// workloadsUsing returns the workloads that consume ref, or list it.
func (c *consumers) workloadsUsing(ref object.Ref) []*Workload {
	var found []*Workload
	for _, kind := range workloadKinds() {
		view := c.workloads[kind]
		found = append(found, view.ByIndex(byReference, ref.String())...)
		for _, w := range view.ByIndex(byPattern, ref.Namespace) {
			listed := slices.ContainsFunc(w.foreign.patterns(), func(p pattern) bool { return p.matches(ref) })
			if listed && !slices.Contains(found, w) {
				found = append(found, w)
			}
		}
	}
	return found
}

// podsUsing returns the pods that consume ref.
func (c *consumers) podsUsing(ref object.Ref) []*Pod {
	return c.pods.ByIndex(byReference, ref.String())
}

// podsOf returns the pods of w that read anything that w does.
func (c *consumers) podsOf(w *Workload) []*Pod {
	var pods []*Pod
	for _, value := range indexValues(w.Namespace, w.References) {
		for _, pod := range c.pods.ByIndex(byReference, value) {
			if pod.OwnerKind == w.Kind && pod.OwnerName == w.Name && !slices.Contains(pods, pod) {
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

// all returns every consumer, workloads first.
func (c *consumers) all() []key {
	var keys []key
	for _, kind := range workloadKinds() {
		for _, w := range c.workloads[kind].List() {
			if w.relevant() {
				keys = append(keys, w.key())
			}
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
	view, known := c.workloads[k.kind]
	if !known {
		return nil, false
	}
	return view.Get(k.namespace, k.name)
}

// ownerOf returns the workload that made pod.
func (c *consumers) ownerOf(pod *Pod) (*Workload, bool) {
	return c.workload(key{pod.OwnerKind, pod.Namespace, pod.OwnerName})
}

func (w *Workload) key() key { return key{w.Kind, w.Namespace, w.Name} }

// relevant reports whether there may be something to do about w.
func (w *Workload) relevant() bool {
	return len(w.References) > 0 || len(w.Annotations) > 0 || w.foreign != nil
}

func (p *Pod) key() key { return key{KindPod, p.Namespace, p.Name} }

func (p *Pod) relevant() bool { return len(p.References) > 0 }
