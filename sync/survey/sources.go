package survey

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// MissingSource returns a message if base has no source at all. It is empty if
// base has one, and while the source namespace is not cached.
func (o *Reader) MissingSource(base rules.Base) string {
	if !base.BySelector() {
		if source, read := o.Caches.Sources.Get(base.Source.Ref()); source != nil || !read {
			return ""
		}
		return MissingSource(base.Source.String())
	}
	if sources, read := o.Caches.Sources.Of(base); len(sources) > 0 || !read {
		return ""
	}
	return fmt.Sprintf("no object matches its source %s; label one, or correct `source` in the configuration", base.Source)
}

// MissingSource returns the message about a named source that does not exist.
func MissingSource(source string) string {
	return fmt.Sprintf("its source %s does not exist; create it, or correct `source` in the configuration", source)
}

// SourceState is the state of one source of a rule.
type SourceState struct {
	Ref    object.Ref
	Exists bool
	// Version is its resourceVersion.
	Version string
	UID     types.UID
	// ChangedAt is when its data was last written, by the API server's clock; zero
	// if unknown.
	ChangedAt time.Time
	// Expired says which of the certificates that are cloned from it have expired since they
	// were written; empty if none.
	Expired string
}

// SourceStates returns the sources of base by name. A source that base names is
// listed even if it does not exist.
func (o *Reader) SourceStates(base rules.Base) []SourceState {
	var states []SourceState
	for _, ref := range o.Sources(base) {
		state := SourceState{Ref: ref}
		if source, _ := o.Caches.Sources.Get(ref); source != nil {
			state.Exists, state.Version, state.UID, state.ChangedAt = true, source.ResourceVersion, source.UID, source.ChangedAt()
			state.Expired = o.expired(base, source)
		}
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b SourceState) int { return cmp.Compare(a.Ref.Name, b.Ref.Name) })
	return states
}

// ruleIndex finds the rules that may want a target by its kind and name. Asking
// each rule about each target would take quadratic time in the number of rules.
type ruleIndex struct {
	set *rules.Set[spec.Rule]
	// byName holds the rules whose clones all have that name, merged with those of
	// anyName.
	byName map[nameKey][]*spec.Rule
	// anyName holds the rules with a selector, whose clones have the name of their
	// source.
	anyName map[object.Kind][]*spec.Rule
}

type nameKey struct {
	kind object.Kind
	name string
}

func newRuleIndex(set *rules.Set[spec.Rule]) *ruleIndex {
	c := &ruleIndex{set: set, byName: map[nameKey][]*spec.Rule{}, anyName: map[object.Kind][]*spec.Rule{}}
	all := set.All()
	for i := range all {
		rule := &all[i]
		if name, known := rule.FixedName(); known {
			at := nameKey{rule.Source.Kind, name}
			if _, found := c.byName[at]; !found {
				c.byName[at] = slices.Clone(c.anyName[at.kind])
			}
			c.byName[at] = append(c.byName[at], rule)
			continue
		}
		kind := rule.Source.Kind
		c.anyName[kind] = append(c.anyName[kind], rule)
		for at := range c.byName {
			if at.kind == kind {
				c.byName[at] = append(c.byName[at], rule)
			}
		}
	}
	return c
}

// Of returns the rules that may want target, in the order of the file.
func (c *ruleIndex) Of(target object.Ref) []*spec.Rule {
	if named, found := c.byName[nameKey{target.Kind, target.Name}]; found {
		return named
	}
	return c.anyName[target.Kind]
}
