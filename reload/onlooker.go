package reload

// Onlooker is told of the controller's work as it is done, to show it. It must
// not wait.
type Onlooker interface{ Reloaded(reloaded Reloaded) }

// Reloaded is something done for a consumer whose data changed; by names alone.
type Reloaded struct {
	Step Step
	// Consumer is as Kind/namespace/name.
	Consumer string
	// Rule is empty where the owner of the consumer asks.
	Rule string
	// Changed names objects.
	Changed []string
}

// show tells of what a change has brought about. That data was adopted, or a
// kubelet asked once more, is no news.
func (r *Reporter) show(k key, decision Decision) {
	if r.onlooker == nil {
		return
	}
	switch decision.Step {
	case StepRestart, StepRefresh:
		r.onlooker.Reloaded(Reloaded{Step: decision.Step, Consumer: k.String(), Rule: decision.Rule, Changed: decision.Changed})
	default:
	}
}
