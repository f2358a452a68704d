package sync

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// SourceMissing is the reason of the Event about a rule whose source does not
// exist.
const SourceMissing = "SourceMissing"

// emitMissing reports each rule that wants the place and had no source, given
// by name, when the place was looked at. The cache is not read a second time:
// the source may have been recreated meanwhile.
func (c *controller) emitMissing(state plan.State) {
	for _, claim := range state.Candidates {
		if claim.Source != nil {
			continue
		}
		about := reference(claim.Ref)
		if _, found := c.Caches.Namespaces.Get("", claim.Ref.Namespace); !found {
			about = c.ownReference()
		}
		c.emit(events.Event{
			Rule: claim.Rule.Name, About: about, Warning: true, Reason: SourceMissing, Action: string(plan.Leave),
			Note: missingNote(claim.Rule, survey.MissingSource(claim.Ref.String())),
		}, "")
	}
}

func missingNote(rule *spec.Rule, missing string) string {
	fate := "existing clones stay as they are"
	if rule.OnSourceDeleted == spec.Delete {
		fate = "onSourceDeleted is Delete, so existing clones are due for removal as long as it does not exist"
	}
	return fmt.Sprintf("rule %q: %s; %s", rule.Name, missing, fate)
}

// ownReference is what Events are about that concern a rule as a whole.
func (c *controller) ownReference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: c.ownNamespace, Namespace: c.ownNamespace}
}
