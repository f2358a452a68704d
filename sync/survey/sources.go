package survey

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
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
	// ChangedAt is when its data was last written, by the API server's clock; zero
	// if unknown.
	ChangedAt time.Time
}

// SourceStates returns the sources of base by name. A source that base names is
// listed even if it does not exist.
func (o *Reader) SourceStates(base rules.Base) []SourceState {
	var states []SourceState
	for _, ref := range o.Sources(base) {
		state := SourceState{Ref: ref}
		if source, _ := o.Caches.Sources.Get(ref); source != nil {
			state.Exists, state.Version, state.ChangedAt = true, source.ResourceVersion, source.ChangedAt()
		}
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b SourceState) int { return cmp.Compare(a.Ref.Name, b.Ref.Name) })
	return states
}
