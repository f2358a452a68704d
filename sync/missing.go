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

// emitMissing reports each candidate rule whose named source did not exist when
// state was read. It does not read the cache again, because the source may have
// been recreated since.
func (c *controller) emitMissing(state plan.State) {
	for _, candidate := range state.Candidates {
		if candidate.Source != nil {
			continue
		}
		about := reference(candidate.Ref)
		if _, found := c.Caches.Namespaces.Get("", candidate.Ref.Namespace); !found {
			about = c.ownReference()
		}
		c.emit(events.Event{
			Rule: candidate.Rule.Name, About: about, Warning: true, Reason: SourceMissing, Action: string(plan.Leave),
			Note: missingNote(candidate.Rule, survey.MissingSource(candidate.Ref.String())),
		}, "")
	}
}

func missingNote(rule *spec.Rule, missing string) string {
	fate := "existing clones stay as they are"
	if rule.OnSourceDeleted == spec.Delete {
		fate = "existing clones are deleted while it does not exist, because onSourceDeleted is Delete"
	}
	return fmt.Sprintf("rule %q: %s; %s", rule.Name, missing, fate)
}

// ownReference returns Headwater's own namespace, which Events about a whole rule
// regard.
func (c *controller) ownReference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: c.ownNamespace, Namespace: c.ownNamespace}
}
