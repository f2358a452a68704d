package report

import (
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Observer is told of the controller's work as it is done, to show it. It must
// not wait.
type Observer interface{ Reloaded(reloaded Reloaded) }

// Reloaded is something done for a consumer whose data changed; by names alone.
type Reloaded struct {
	Step spec.Step
	// Consumer is as Kind/namespace/name.
	Consumer string
	// Rule is empty where the owner of the consumer asks.
	Rule string
	// Changed names objects.
	Changed []string
}

// notifyObserver tells of what a change has brought about. That data was adopted, or a
// kubelet asked once more, is no news.
func (r *Reporter) notifyObserver(k kinds.Key, decision decide.Decision) {
	if r.observer == nil {
		return
	}
	switch decision.Step {
	case spec.StepRestart, spec.StepRefresh:
		r.observer.Reloaded(Reloaded{Step: decision.Step, Consumer: k.String(), Rule: decision.Rule, Changed: decision.Changed})
	default:
	}
}
