package reload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

func (w *Workload) wishes(settings Settings) wishes {
	of, _ := wishesOf(&w.ObjectMeta, w.foreign, settings)
	return of
}

// wishesFor takes the wishes for w from itself, and from the one that is stamped
// for it: what made w may take off again whatever is written on w.
func (c *consumers) wishesFor(w *Workload, settings Settings) wishes {
	of := w.wishes(settings)
	if top := c.topOf(w).top; top != w {
		of = of.under(top.wishes(settings))
	}
	return c.sectioned(of, w.Namespace)
}

// sectioned adds what sections of the configuration ask for a consumer of that
// namespace.
func (c *consumers) sectioned(of wishes, namespace string) wishes {
	if c.sections == nil {
		return of
	}
	sections, namespaceLabels := c.sections(namespace)
	return of.governedBy(sections, namespace, namespaceLabels)
}

// wishesForPod takes the wishes for a pod from the workload it belongs to. Those
// of a pod without one, or whose workload is not cached, are its own.
func (c *consumers) wishesForPod(pod *Pod, settings Settings) wishes {
	if owner, found := c.ownerOf(pod); found {
		return c.wishesFor(owner, settings)
	}
	of, _ := wishesOf(&pod.ObjectMeta, nil, settings)
	return c.sectioned(of, pod.Namespace)
}

// rereadDelay is how soon a consumer is looked at again that references a
// source whose cache is not full yet.
const rereadDelay = time.Second

func (c *controller) gatherer() (*gatherer, error) {
	hasher, err := c.digestKey.Hasher()
	if err != nil {
		return nil, err
	}
	return &gatherer{caches: c.caches, rules: c.rules.Load(), hasher: hasher, read: c.reads.get, absences: &c.absences, keyChanges: &c.keyChanges}, nil
}

// gatherer reads with one set of rules.
type gatherer struct {
	caches *kube.Caches
	rules  *rules.Set[Rule]
	hasher *digest.Hasher
	// read returns an object whose data no cache holds; nil when it is not
	// known, or not yet.
	read func(ref object.Ref, resourceVersion string) *object.Digested
	// absences are nil for who does not follow changes.
	absences *absences
	// keyChanges are nil, too.
	keyChanges *keyChanges
	// installed is when Headwater was installed; nil where it does not matter what
	// pods missed.
	installed *time.Time
	// reading is set when a source could not be looked up yet.
	reading bool
}

// family is what a workload and those that it is stamped for consume, each by
// the wishes for it; of a target what its rules tell it of.
func (g *gatherer) family(among *consumers, members []*Workload, settings Settings) []Consumed {
	var consumed []Consumed
	for _, w := range members {
		of := among.wishesFor(w, settings)
		if w.isTarget() {
			consumed = append(consumed, g.targetOf(w, of)...)
		} else {
			consumed = append(consumed, g.missed(among, w, members[0], g.without(among, w, g.gather(w.Namespace, w.References, of)))...)
		}
	}
	return consumed
}

func (g *gatherer) gather(namespace string, references []Reference, of wishes) []Consumed {
	references = slices.Concat(references, g.listed(namespace, of))
	consumed := make([]Consumed, 0, len(references))
	for _, reference := range references {
		consumed = append(consumed, g.consumed(namespace, reference, of))
	}
	return consumed
}

// listed are the references that the owner lists for other tools: by name, and
// those that a pattern matches.
func (g *gatherer) listed(namespace string, of wishes) []Reference {
	var references []Reference
	for _, ref := range of.named {
		references = append(references, listedReference(ref))
	}
	for _, kind := range object.Kinds {
		matched := g.matched(kind, namespace, of.patterns)
		for _, ref := range matched[:min(len(matched), mark.MaxListed)] {
			references = append(references, listedReference(ref))
		}
	}
	return references
}

// matched returns the objects that any of patterns matches, sorted by name.
func (g *gatherer) matched(kind object.Kind, namespace string, patterns []pattern) []object.Ref {
	if len(patterns) == 0 {
		return nil
	}
	var found []object.Ref
	add := func(name string) {
		ref := object.Ref{Kind: kind, Namespace: namespace, Name: name}
		if slices.ContainsFunc(patterns, func(p pattern) bool { return p.matches(ref) }) {
			found = append(found, ref)
		}
	}
	for _, clone := range g.caches.Clones[kind].InNamespace(namespace) {
		add(clone.Name)
	}
	for _, foreign := range g.caches.Foreign[kind].InNamespace(namespace) {
		add(foreign.Name)
	}
	slices.SortFunc(found, func(a, b object.Ref) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(found)
}

// tooMany are the faults of patterns that match more than mark.MaxListed.
func (g *gatherer) tooMany(namespace string, of wishes) []fault {
	var faults []fault
	for _, kind := range object.Kinds {
		if matched := g.matched(kind, namespace, of.patterns); len(matched) > mark.MaxListed {
			faults = append(faults, fault{annotation: mark.ReloaderNames(kind), inPart: true, problem: fmt.Sprintf(
				"it matches %d objects, of which the first %d by name count; narrow it", len(matched), mark.MaxListed)})
		}
	}
	return faults
}

// consumed is what holds of reference: who wants what done about a change, and
// which data there is.
func (g *gatherer) consumed(namespace string, reference Reference, of wishes) Consumed {
	ref := object.Ref{Kind: reference.Kind, Namespace: namespace, Name: reference.Name}
	if reference.Mode == Provided {
		return Consumed{Reference: reference, Object: ref, Action: None, Spared: ReasonProvided}
	}
	o := g.look(ref)
	c := g.wanted(o, reference, of)
	var current *object.Digested
	if c.governed() {
		current = g.current(o, c)
	}
	if current == nil {
		c.Absent = !o.exists()
		return c
	}
	if c = c.selectedBy(current.Labels); !c.governed() {
		return c
	}
	c.Exists, c.Digests = true, current.Digests
	c.Immutable, c.Version = current.Immutable, current.ResourceVersion
	c.CreatedAt, c.ChangedAt = current.CreationTimestamp.Time, current.ChangedAt
	c.KeysChangedAt = g.keyChanges.last(ref, c.Keys, c.ChangedAt)
	return c
}

// current is o as it is now; nil when that is not known.
func (g *gatherer) current(o looked, c Consumed) *object.Digested {
	switch {
	case o.clone != nil:
		return o.clone
	case o.source != nil:
		return o.source.Digested(g.hasher)
	case o.foreign != nil && c.wantsRead():
		return g.read(o.ref, o.foreign.ResourceVersion)
	default:
		return nil
	}
}

// wantsRead reports whether it is of any use to read an object that no cache
// holds: a rule's objects are all in one.
func (c Consumed) wantsRead() bool { return c.OptIn != "" && c.onChange().Step != StepNothing }

// wanted finds who wants something done about a change of o, and what.
func (g *gatherer) wanted(o looked, reference Reference, of wishes) Consumed {
	c := Consumed{Object: o.ref, Action: None}
	var counts bool
	c.Reference, counts = of.narrowed(reference)
	var ruled, asked Action
	if rule := g.rule(o, of.labels); rule != nil {
		c.Rule, ruled = rule.Name, rule.Action
		c.Pace, c.Post = rule.pace(), rule.Then.HTTPPost
	}
	if ask := of.asked(reference, o.ref, o.tags(), c.Rule != ""); ask != nil {
		c.OptIn, asked = ask.tool(), ask.action()
		if section, is := ask.(namespaceAsk); is {
			c.objects = section.section.objects
		}
		if c.Rule == "" {
			c.Pace = of.pace
		}
	}
	c.Pace = c.Pace.and(Pace{Interval: of.minInterval})
	switch {
	case !c.governed():
		c.Spared = of.spared(reference, o.ref, o.tags())
	case !counts:
		c.Spared = ReasonKeys
	default:
		c.Action = cmp.Or(of.how, asked, ruled, Auto)
	}
	return c
}

// looked is what the caches hold of an object.
type looked struct {
	ref     object.Ref
	clone   *object.Digested
	source  *object.Full
	foreign *kube.Foreign
	// unsynced is true while sources of its place may be missing.
	unsynced bool
}

func (g *gatherer) look(ref object.Ref) looked {
	o := looked{ref: ref}
	o.clone, _ = g.caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name)
	o.foreign, _ = g.caches.Foreign[ref.Kind].Get(ref.Namespace, ref.Name)
	source, synced := g.caches.Sources.Get(ref)
	o.source, o.unsynced = source, !synced
	return o
}

// exists reports whether there is an object of that name, whoever governs it.
func (o looked) exists() bool { return o.clone != nil || o.foreign != nil }

func (o looked) tags() mark.Tags {
	switch {
	case o.clone != nil:
		return mark.TagsOf(o.clone.Annotations)
	case o.foreign != nil:
		return o.foreign.Tags
	default:
		return mark.Tags{}
	}
}
