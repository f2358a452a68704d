package reload

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

func (w *Workload) wishes() wishes {
	of, _ := wishesOf(&w.ObjectMeta)
	return of
}

// wishesFor takes the wishes for a pod from the workload it belongs to. Those
// of a pod without one, or whose workload is not cached, are its own.
func (c *consumers) wishesFor(pod *Pod) wishes {
	if owner, found := c.ownerOf(pod); found {
		return owner.wishes()
	}
	of, _ := wishesOf(&pod.ObjectMeta)
	return of
}

// rereadDelay is how soon a consumer is looked at again that references a
// source whose cache is not full yet.
const rereadDelay = time.Second

// gather reads from the caches what holds of the objects that k references.
func (c *controller) gather(k key, references []Reference, of wishes) (*digest.Hasher, []Consumed, error) {
	hasher, err := c.digestKey.Hasher()
	if err != nil {
		return nil, nil, err
	}
	g := gatherer{caches: c.caches, rules: c.rules.Load(), hasher: hasher}
	consumed := make([]Consumed, 0, len(references))
	for _, reference := range references {
		consumed = append(consumed, g.consumed(k.namespace, reference, of))
	}
	if g.reading {
		c.queue.After(k, rereadDelay)
	}
	return hasher, consumed, nil
}

// gatherFamily reads what holds of the objects that w, and the workloads that
// it is stamped for, reference, each by the wishes of its own owner.
func (c *controller) gatherFamily(w *Workload) (hasher *digest.Hasher, all []Consumed, err error) {
	if w.isTarget() {
		return c.gatherTarget(w)
	}
	for _, member := range c.consumers.family(w) {
		var consumed []Consumed
		if hasher, consumed, err = c.gather(w.key(), member.References, member.wishes()); err != nil {
			return nil, nil, err
		}
		all = append(all, consumed...)
	}
	return hasher, all, nil
}

// gatherer reads with one set of rules.
type gatherer struct {
	caches *kube.Caches
	rules  *rules.Set[Rule]
	hasher *digest.Hasher
	// reading is set when a source could not be looked up yet.
	reading bool
}

func (g *gatherer) consumed(namespace string, reference Reference, of wishes) Consumed {
	ref := object.Ref{Kind: reference.Kind, Namespace: namespace, Name: reference.Name}
	c := Consumed{Object: ref, Action: None}
	var counts bool
	c.Reference, counts = of.narrowed(reference)
	rule, current := g.governed(ref, of.labels)
	if rule != nil {
		c.Rule = rule.Name
	}
	if rule != nil && counts {
		c.Action = cmp.Or(of.action, rule.Action)
	}
	if current == nil {
		c.Absent = !g.exists(ref)
		return c
	}
	c.Exists, c.Digests = true, current.Digests
	c.Immutable, c.ChangedAt = current.Immutable, current.ChangedAt
	return c
}

// exists reports whether there is an object of that name, whoever governs it.
func (g *gatherer) exists(ref object.Ref) bool {
	_, cloned := g.caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name)
	_, foreign := g.caches.Foreign[ref.Kind].Get(ref.Namespace, ref.Name)
	return cloned || foreign
}

// governed returns the rule that governs ref for a consumer with those labels,
// and ref itself where it exists. Clones are governed by the rule they belong
// to, sources by the first rule that selects the consumer.
func (g *gatherer) governed(ref object.Ref, of labels.Set) (*Rule, *object.Digested) {
	if clone, found := g.caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name); found {
		if marks, readable := mark.Of(clone); readable {
			if rule, known := g.rules.Named(marks.Rule); known && rule.selects(of) {
				return &rule, clone
			}
			return nil, nil
		}
	}
	source, synced := g.caches.Sources.Get(ref)
	var labelled labels.Set
	if source != nil {
		labelled = source.Labels
	}
	for _, rule := range g.rules.ForSource(ref, labelled) {
		if !rule.selects(of) {
			continue
		}
		if source != nil {
			return &rule, source.Digested(g.hasher)
		}
		g.reading = g.reading || !synced
		return &rule, nil
	}
	return nil, nil
}

func (r Rule) selects(of labels.Set) bool { return r.workloads == nil || r.workloads.Matches(of) }
