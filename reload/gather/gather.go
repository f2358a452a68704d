package gather

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// RereadDelay is how soon a consumer is looked at again that references a
// source whose cache is not full yet.
const RereadDelay = time.Second

// Gatherer reads with one set of rules.
type Gatherer struct {
	Caches *informers.Caches
	Rules  *rules.Set[spec.Rule]
	Hasher *digest.Hasher
	// read returns an object whose data no cache holds; nil when it is not
	// known, or not yet.
	Read func(ref object.Ref, resourceVersion string) *object.Digested
	// absences are nil for who does not follow changes.
	Absences *track.MissingObjects
	// KeyChanges are nil, too.
	KeyChanges *track.KeyChanges
	// installed is when Headwater was installed; nil where it does not matter what
	// pods missed.
	Installed *time.Time
	// reading is set when a source could not be looked up yet.
	Reading bool
}

// StampedGroup is what a workload and those that it is stamped for consume, each by
// the wishes for it; of a target what its rules tell it of.
func (g *Gatherer) StampedGroup(among *Consumers, members []*workload.Workload, settings spec.Settings) []decide.Input {
	var consumed []decide.Input
	for _, w := range members {
		of := among.PreferencesFor(w, settings)
		if w.IsTarget() {
			consumed = append(consumed, g.targetOf(w, of)...)
		} else {
			consumed = append(consumed, g.markMissed(among, w, members[0], g.markStartedWithout(among, w, g.gather(w.Namespace, w.References, of)))...)
		}
	}
	return consumed
}

func (g *Gatherer) gather(namespace string, references []refs.Reference, of optin.Preferences) []decide.Input {
	references = slices.Concat(references, g.Listed(namespace, of))
	consumed := make([]decide.Input, 0, len(references))
	for _, reference := range references {
		consumed = append(consumed, g.Consumed(namespace, reference, of))
	}
	return consumed
}

// Listed are the references that the owner lists for other tools: by name, and
// those that a pattern matches.
func (g *Gatherer) Listed(namespace string, of optin.Preferences) []refs.Reference {
	var references []refs.Reference
	for _, ref := range of.Named {
		references = append(references, optin.ListedReference(ref))
	}
	for _, kind := range object.Kinds {
		matched := g.matched(kind, namespace, of.Patterns)
		for _, ref := range matched[:min(len(matched), mark.MaxListed)] {
			references = append(references, optin.ListedReference(ref))
		}
	}
	return references
}

// matched returns the objects that any of patterns matches, sorted by name.
func (g *Gatherer) matched(kind object.Kind, namespace string, patterns []optin.Pattern) []object.Ref {
	if len(patterns) == 0 {
		return nil
	}
	var found []object.Ref
	add := func(name string) {
		ref := object.Ref{Kind: kind, Namespace: namespace, Name: name}
		if slices.ContainsFunc(patterns, func(p optin.Pattern) bool { return p.Matches(ref) }) {
			found = append(found, ref)
		}
	}
	for _, clone := range g.Caches.Clones[kind].InNamespace(namespace) {
		add(clone.Name)
	}
	for _, foreign := range g.Caches.Unmanaged[kind].InNamespace(namespace) {
		add(foreign.Name)
	}
	slices.SortFunc(found, func(a, b object.Ref) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(found)
}

// TooMany are the faults of patterns that match more than mark.MaxListed.
func (g *Gatherer) TooMany(namespace string, of optin.Preferences) []optin.Fault {
	var faults []optin.Fault
	for _, kind := range object.Kinds {
		if matched := g.matched(kind, namespace, of.Patterns); len(matched) > mark.MaxListed {
			faults = append(faults, optin.Fault{Annotation: mark.ReloaderNames(kind), InPart: true, Problem: fmt.Sprintf(
				"it matches %d objects, of which the first %d by name count; narrow it", len(matched), mark.MaxListed)})
		}
	}
	return faults
}

// Consumed is what holds of reference: who wants what done about a change, and
// which data there is.
func (g *Gatherer) Consumed(namespace string, reference refs.Reference, of optin.Preferences) decide.Input {
	ref := object.Ref{Kind: reference.Kind, Namespace: namespace, Name: reference.Name}
	if reference.Mode == refs.Provided {
		return decide.Input{Reference: reference, Object: ref, Action: spec.None, Spared: spec.ReasonProvided}
	}
	o := g.Look(ref)
	c := g.Wanted(o, reference, of)
	var current *object.Digested
	if c.Governed() {
		current = g.current(o, c)
	}
	if current == nil {
		c.Absent = !o.Exists()
		return c
	}
	if c = c.SelectedBy(current.Labels); !c.Governed() {
		return c
	}
	c.Exists, c.Digests = true, current.Digests
	c.Immutable, c.Version = current.Immutable, current.ResourceVersion
	c.CreatedAt, c.ChangedAt = current.CreationTimestamp.Time, current.ChangedAt
	c.KeysChangedAt = g.KeyChanges.Last(ref, c.Keys, c.ChangedAt)
	return c
}

// current is o as it is now; nil when that is not known.
func (g *Gatherer) current(o looked, c decide.Input) *object.Digested {
	switch {
	case o.clone != nil:
		return o.clone
	case o.source != nil:
		return o.source.Digested(g.Hasher)
	case o.foreign != nil && c.WantsRead():
		return g.Read(o.ref, o.foreign.ResourceVersion)
	default:
		return nil
	}
}

// Wanted finds who wants something done about a change of o, and what.
func (g *Gatherer) Wanted(o looked, reference refs.Reference, of optin.Preferences) decide.Input {
	c := decide.Input{Object: o.ref, Action: spec.None}
	var counts bool
	c.Reference, counts = of.Narrowed(reference)
	var ruled, asked spec.Action
	if rule := g.rule(o, of.Labels); rule != nil {
		c.Rule, ruled = rule.Name, rule.Action
		c.Pace, c.Post = rule.Pace(), rule.Then.HTTPPost
	}
	if ask := of.OptInFor(reference, o.ref, o.tags(), c.Rule != ""); ask != nil {
		c.OptIn, asked = ask.Tool(), ask.Action()
		if section, is := ask.(optin.SectionOptIn); is {
			c.Objects = section.Section.Objects
		}
		if c.Rule == "" {
			c.Pace = of.Pace
		}
	}
	c.Pace = c.Pace.And(spec.Pace{Interval: of.MinInterval})
	switch {
	case !c.Governed():
		c.Spared = of.ExclusionReason(reference, o.ref, o.tags())
	case !counts:
		c.Spared = spec.ReasonKeys
	default:
		c.Action = cmp.Or(of.How, asked, ruled, spec.Auto)
	}
	return c
}

// looked is what the caches hold of an object.
type looked struct {
	ref     object.Ref
	clone   *object.Digested
	source  *object.Full
	foreign *informers.Unmanaged
	// unsynced is true while sources of its place may be missing.
	unsynced bool
}

// Look reads what the caches hold of ref. It sends no request.
func (g *Gatherer) Look(ref object.Ref) looked {
	o := looked{ref: ref}
	o.clone, _ = g.Caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name)
	o.foreign, _ = g.Caches.Unmanaged[ref.Kind].Get(ref.Namespace, ref.Name)
	source, synced := g.Caches.Sources.Get(ref)
	o.source, o.unsynced = source, !synced
	return o
}

// Exists reports whether there is an object of that name, whoever governs it.
func (o looked) Exists() bool { return o.clone != nil || o.foreign != nil }

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

// ConflictDelay is how long a consumer is left alone that was written, or
// replaced by another of its name, at the same moment: time for the caches to
// catch up.
const ConflictDelay = 200 * time.Millisecond
