package report

import (
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Observer receives the controller's work as it happens, to display it. It must not
// block.
type Observer interface{ Reloaded(reloaded Reloaded) }

// Reloaded is an action for a consumer whose data changed. It contains only names.
type Reloaded struct {
	Step spec.Step
	// Consumer has the form Kind/namespace/name.
	Consumer string
	// Rule is empty for an opt-in.
	Rule string
	// Changed names objects.
	Changed []string
}

// notifyObserver passes on restarts and refreshes. Adopted baselines and confirmations
// are not shown.
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
