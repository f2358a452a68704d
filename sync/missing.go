package sync

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// SourceMissing is the reason of the Event about a rule whose source is not
// there.
const SourceMissing = "SourceMissing"

// MissingSource says what is missing when base has no source at all. It is empty
// when it has one, and while that is not known.
func (o *Observer) MissingSource(base rules.Base) string {
	if !base.BySelector() {
		if source, read := o.caches.Sources.Get(base.Source.Ref()); source != nil || !read {
			return ""
		}
		return fmt.Sprintf("its source %s is not there; make it, or mend source in the file", base.Source)
	}
	if sources, read := o.caches.Sources.Of(base); len(sources) > 0 || !read {
		return ""
	}
	return fmt.Sprintf("no object is its source %s; label one, or mend source in the file", base.Source)
}

// tellMissing tells once of each rule that wants the place and whose source,
// given by name, is not there.
func (c *controller) tellMissing(state State) {
	for _, claim := range state.Claims {
		if claim.Source != nil {
			continue
		}
		about := reference(claim.Ref)
		if _, found := c.caches.Namespaces.Get("", claim.Ref.Namespace); !found {
			about = c.ownReference()
		}
		c.tell(kube.Event{
			Rule: claim.Rule.Name, About: about, Warning: true, Reason: SourceMissing, Action: string(Leave),
			Note: missingNote(claim.Rule, c.MissingSource(claim.Rule.Base)),
		}, "")
	}
}

func missingNote(rule *Rule, missing string) string {
	fate := "clones that are there stay as they are"
	if rule.OnSourceDeleted == Delete {
		fate = "clones that are there are removed, as onSourceDeleted says"
	}
	return fmt.Sprintf("rule %q: %s; %s", rule.Name, missing, fate)
}

// ownReference is what Events are about that concern a rule as a whole.
func (c *controller) ownReference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: c.ownNamespace, Namespace: c.ownNamespace}
}
