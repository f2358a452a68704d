package sync

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// SourceMissing is the reason of the Event about a rule whose source does not
// exist.
const SourceMissing = "SourceMissing"

// MissingSource says what is missing when base has no source at all. It is empty
// when base has one, and while that is not known.
func (o *Observer) MissingSource(base rules.Base) string {
	if !base.BySelector() {
		if source, read := o.caches.Sources.Get(base.Source.Ref()); source != nil || !read {
			return ""
		}
		return missingSource(base.Source.String())
	}
	if sources, read := o.caches.Sources.Of(base); len(sources) > 0 || !read {
		return ""
	}
	return fmt.Sprintf("no object is its source %s; label one, or correct `source` in the configuration", base.Source)
}

func missingSource(source string) string {
	return fmt.Sprintf("its source %s does not exist; create it, or correct `source` in the configuration", source)
}

// tellMissing reports each rule that wants the place and had no source, given
// by name, when the place was looked at. The cache is not read a second time:
// the source may have been recreated meanwhile.
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
			Note: missingNote(claim.Rule, missingSource(claim.Ref.String())),
		}, "")
	}
}

func missingNote(rule *Rule, missing string) string {
	fate := "existing clones stay as they are"
	if rule.OnSourceDeleted == Delete {
		fate = "onSourceDeleted is Delete, so existing clones are due for removal as long as it does not exist"
	}
	return fmt.Sprintf("rule %q: %s; %s", rule.Name, missing, fate)
}

// ownReference is what Events are about that concern a rule as a whole.
func (c *controller) ownReference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: c.ownNamespace, Namespace: c.ownNamespace}
}
