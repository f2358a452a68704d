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
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// RereadDelay is when to reconcile a consumer again that references an object whose
// cache is not synced yet.
const RereadDelay = time.Second

// Gatherer collects what decisions depend on from the caches, by one set of rules. It
// starts nothing and writes nothing. The controller and `headwater explain` both use it,
// so that explain shows what the controller does.
type Gatherer struct {
	Consumers *Consumers
	Caches    *informers.Caches
	Rules     *rules.Set[spec.Rule]
	Settings  *spec.Compiled
	Hasher    *digest.Hasher
	// Revisions may be nil for callers that start no restarts.
	Revisions *revisions.View
	// Read returns an object that no cache holds; nil if its data is not known yet.
	Read func(ref object.Ref, resourceVersion string) *object.Digested
	// Memory is nil outside the leader.
	Memory *track.Memory
	// Room reports whether a rollout of a workload may start; see decide.State.Full.
	Room func(kinds.Key) bool
	// Installed is when Headwater was installed.
	Installed time.Time
	Now       time.Time
	// Reading is set if an object could not be looked up yet.
	Reading bool
}

// Inputs returns what a workload and those restarted through it consume, each with the
// preferences for it. For a target, these are the objects of the rules that select it.
// missed says whether to mark what pods missed.
func (g *Gatherer) Inputs(members []*workload.Workload, missed bool) []decide.Input {
	var inputs []decide.Input
	for _, w := range members {
		of := g.Consumers.PreferencesFor(w, g.Settings.Settings)
		if w.IsTarget() {
			inputs = append(inputs, g.targetInputs(w, of)...)
			continue
		}
		own := g.markStartedWithout(w, g.inputs(w.Namespace, w.References, of))
		if missed {
			own = g.markMissed(w, members[0], own)
		}
		inputs = append(inputs, own...)
	}
	return inputs
}

func (g *Gatherer) inputs(namespace string, references []refs.Reference, of optin.Preferences) []decide.Input {
	references = slices.Concat(references, g.Listed(namespace, of))
	inputs := make([]decide.Input, 0, len(references))
	for _, reference := range references {
		inputs = append(inputs, g.Input(namespace, reference, of))
	}
	return inputs
}

// Listed returns the references that the owner lists for other tools: by name, and by
// matching patterns.
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

// matched returns the objects that match any of patterns, sorted by name.
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
	for _, unmanaged := range g.Caches.Unmanaged[kind].InNamespace(namespace) {
		add(unmanaged.Name)
	}
	slices.SortFunc(found, func(a, b object.Ref) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(found)
}

// TooMany returns the faults of patterns that match more than mark.MaxListed objects.
func (g *Gatherer) TooMany(namespace string, of optin.Preferences) []optin.Fault {
	var faults []optin.Fault
	for _, kind := range object.Kinds {
		if matched := g.matched(kind, namespace, of.Patterns); len(matched) > mark.MaxListed {
			faults = append(faults, optin.Fault{Annotation: mark.ReloaderNames(kind), InPart: true, Problem: fmt.Sprintf(
				"it matches %d objects, of which only the first %d by name count; make the pattern narrower", len(matched), mark.MaxListed)})
		}
	}
	return faults
}

// Input returns the input of reference: which rule or opt-in applies, and the current
// data.
func (g *Gatherer) Input(namespace string, reference refs.Reference, of optin.Preferences) decide.Input {
	ref := object.Ref{Kind: reference.Kind, Namespace: namespace, Name: reference.Name}
	if reference.Mode == refs.Provided {
		return decide.Input{Reference: reference, Object: ref, Action: spec.None, SkipReason: spec.ReasonProvided}
	}
	o := g.Cached(ref)
	c := g.Match(o, reference, of)
	var current *object.Digested
	if c.Governed() {
		current = g.current(o, c)
	}
	if current == nil {
		c.Absent = !o.Exists() && g.Caches.Reads(ref.Kind)
		return c
	}
	if c = c.SelectedBy(current.Labels); !c.Governed() {
		return c
	}
	c.Exists, c.Digests = true, current.Digests
	c.Immutable, c.Version = current.Immutable, current.ResourceVersion
	c.CreatedAt, c.ChangedAt = current.CreationTimestamp.Time, current.ChangedAt
	c.KeysChangedAt = g.Memory.KeysChangedAt(ref, c.Keys, c.ChangedAt)
	if o.clone != nil {
		c.Undelivered = g.undelivered(c.Rule, o.clone)
	}
	return c
}

// actionOf returns the action of rule for consumers in namespace.
func (g *Gatherer) actionOf(rule *spec.Rule, namespace string) spec.Action {
	if rule.Stages == nil {
		return rule.Action
	}
	found, known := g.Caches.Namespaces.Get("", namespace)
	if !known {
		return rule.Action
	}
	return rule.ActionIn(namespace, found.Labels)
}

// undelivered returns what a clone of rule would have of the revisions of its source that
// were not delivered; nil unless it has one that was.
func (g *Gatherer) undelivered(name string, clone *object.Digested) (found []object.Digests) {
	rule, known := g.Rules.Named(name)
	marks, ours := mark.Of(clone)
	if g.Revisions == nil || !known || !ours || rule.Stages == nil {
		return nil
	}
	delivered := false
	for _, revision := range g.Revisions.History(revisions.Key{Rule: name, Source: marks.Source}) {
		digests := rule.AsCloned(revision.Digests)
		switch is := slices.Equal(digests, clone.Digests); {
		case is && revision.Verdict == revisions.Delivered:
			delivered = true
		case !is && revision.Verdict != revisions.Delivered:
			found = append(found, digests)
		}
	}
	if !delivered {
		return nil
	}
	return found
}

// current returns the current version of o; nil if it is not known.
func (g *Gatherer) current(o cachedObject, c decide.Input) *object.Digested {
	switch {
	case o.clone != nil:
		return o.clone
	case o.source != nil:
		return o.source.Digested(g.Hasher)
	case o.unmanaged != nil && c.WantsRead():
		return g.Read(o.ref, o.unmanaged.ResourceVersion)
	default:
		return nil
	}
}

// Match returns the input of reference without its data: which rule or opt-in applies,
// and which action it asks for.
func (g *Gatherer) Match(o cachedObject, reference refs.Reference, of optin.Preferences) decide.Input {
	c := decide.Input{Object: o.ref, Action: spec.None}
	var counts bool
	c.Reference, counts = of.Narrowed(reference)
	var ruled, asked spec.Action
	suspended := false
	if rule := g.rule(o, of.Labels); rule != nil {
		suspended = rule.Suspended
		c.Rule, c.Origin, ruled = rule.Name, g.origin(*rule, o.ref), g.actionOf(rule, o.ref.Namespace)
		c.Staged = rule.NeedsEvidence() && o.clone != nil && mark.IsMarked(o.clone)
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
	c.Pace = c.Pace.And(of.Limits())
	switch {
	case !c.Governed():
		c.SkipReason = of.ExclusionReason(reference, o.ref, o.tags())
		if of.How == spec.None {
			c.SkipReason = cmp.Or(c.SkipReason, spec.ReasonOff)
		}
	case suspended:
		c.SkipReason = spec.ReasonSuspended
	case ruled == spec.Never:
		c.SkipReason = spec.ReasonNever
	case !counts:
		c.SkipReason = spec.ReasonKeys
	default:
		byOwner := cmp.Or(of.How, asked)
		c.Action, c.ByOwner = cmp.Or(byOwner, ruled, spec.Auto), byOwner != ""
	}
	return c
}

// cachedObject is what the caches hold of an object.
type cachedObject struct {
	ref       object.Ref
	clone     *object.Digested
	source    *object.Full
	unmanaged *informers.Unmanaged
	// unsynced is true while sources in the object's namespace may be missing from the
	// cache.
	unsynced bool
}

// Cached returns what the caches hold of ref. It sends no request.
func (g *Gatherer) Cached(ref object.Ref) cachedObject {
	o := cachedObject{ref: ref}
	o.clone, _ = g.Caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name)
	o.unmanaged, _ = g.Caches.Unmanaged[ref.Kind].Get(ref.Namespace, ref.Name)
	source, synced := g.Caches.Sources.Get(ref)
	o.source, o.unsynced = source, !synced
	return o
}

// Exists reports whether an object of that name exists, managed or not.
func (o cachedObject) Exists() bool { return o.clone != nil || o.unmanaged != nil }

func (o cachedObject) tags() mark.Tags {
	switch {
	case o.clone != nil:
		return mark.TagsOf(o.clone.Annotations)
	case o.unmanaged != nil:
		return o.unmanaged.Tags
	default:
		return mark.Tags{}
	}
}

// ConflictDelay is how long to wait after a conflict, so that the caches catch up with
// the other write.
const ConflictDelay = 200 * time.Millisecond
