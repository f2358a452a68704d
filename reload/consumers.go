package reload

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

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

const (
	// byReference is the index from object.Ref.String to its consumers.
	byReference = "reference"
	// byPattern is the index from a namespace to the workloads whose owners list
	// objects of it by patterns.
	byPattern = "pattern"
	// byBorrowed is the index from a workload's key to those that run its pod
	// template in place of one of their own.
	byBorrowed = "borrowed"
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

// consumer is a workload or a pod.
type consumer interface {
	metav1.Object
	key() key
	form() *Form
}

// consumers are the caches of everything that can reference an object.
type consumers struct {
	workloads map[Kind]*kube.View[*Workload]
	// optional holds the workloads of kinds that a cluster may lack.
	optional *kube.Optional[*Workload]
	pods     *kube.View[*Pod]
	// sections are those of the configuration that may be about consumers of a
	// namespace, and its labels; nil: there are none.
	sections func(namespace string) ([]namespaceSection, map[string]string)
}

// newConsumers adds its caches to caches, which starts them as soon as needed
// says so. Of the kinds that a cluster may lack those that optional returns are
// cached; definitions may be nil where nobody stays to see them come and go. keeps
// is what optional was given, too.
func newConsumers(
	clients *kube.Clients, caches *kube.Caches, needed func() bool,
	optional func() []kube.OptionalKind[*Workload], definitions *kube.View[*kube.Definition], keeps keptReferences, log *zap.Logger,
) (*consumers, error) {
	c := &consumers{workloads: map[Kind]*kube.View[*Workload]{}}
	for kind, informer := range workloadInformers(clients.Typed) {
		view, err := kube.NewView("workloads: "+strings.ToLower(string(kind))+"s", informer, log,
			func(obj any) (*Workload, error) { return keepRolling(obj, keeps) })
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
	pods, err := kube.NewView("pods", podInformer(clients.Typed), log, func(obj any) (*Pod, error) { return keepPod(obj, keeps) })
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
// may lack, as declared and the rules say each time that they are asked for.
func customKinds(declared func() []WorkloadKind, live *rules.Live[Rule], keeps keptReferences) func() []kube.OptionalKind[*Workload] {
	return func() []kube.OptionalKind[*Workload] {
		var kinds []kube.OptionalKind[*Workload]
		seen := map[Kind]bool{}
		for _, form := range append(optionalForms(declared()), annotatedKinds(live.Load())...) {
			if !seen[form.kind()] {
				seen[form.kind()] = true
				kinds = append(kinds, kube.OptionalKind[*Workload]{
					GroupVersionKind: form.GroupVersionKind, Keep: keepCustom(form, keeps), Shape: strings.Join(form.Template, "."),
				})
			}
		}
		return kinds
	}
}

func workloadIndexes() map[string]func(*Workload) []string {
	return map[string]func(*Workload) []string{
		byReference: referenceValues,
		byPattern:   patternValues,
		byBorrowed:  borrowedValues,
		byOwner:     ownerValues,
		byTarget:    targetValues,
	}
}

func referenceValues(w *Workload) []string {
	values := indexValues(w.Namespace, w.References)
	for _, ref := range w.foreign.lists() {
		values = append(values, ref.String())
	}
	return values
}

func patternValues(w *Workload) []string {
	if len(w.foreign.patterns()) == 0 {
		return nil
	}
	return []string{w.Namespace}
}

func borrowedValues(w *Workload) []string {
	if w.Borrows == nil {
		return nil
	}
	return []string{w.Borrows.String()}
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

func (w *Workload) key() key { return key{w.Kind, w.Namespace, w.Name} }

// relevant reports whether there may be something to do about w, or about what
// it controls.
func (w *Workload) relevant() bool {
	return len(w.References) > 0 || len(w.Annotations) > 0 || w.foreign != nil || w.Form != nil || w.Unknown != nil
}

func (p *Pod) key() key { return key{KindPod, p.Namespace, p.Name} }

func (p *Pod) form() *Form { return typedForms[KindPod] }

func (p *Pod) relevant() bool { return len(p.References) > 0 }
