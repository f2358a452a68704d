package reload

import (
	"github.com/headwater-k8s/headwater/internal/mark"
)

// The controller is the memory of the decisions that it carries out: what it
// wrote counts before the caches show it.
var _ memory = (*controller)(nil)

func (c *controller) decider() decider {
	settings := c.settings.Load()
	return decider{consumers: c.consumers, settings: settings.Settings, windows: settings.windows, memory: c, now: c.now()}
}

func (c *controller) templateVersion(w *Workload) string { return c.pending.template(w.key()) }

func (c *controller) isWaiting(w *Workload) bool { return c.waits.has(w.key()) }

func (c *controller) refreshedFor(pod *Pod) string {
	return c.writes.read(pod.key(), pod, mark.RefreshedFor)
}

// admit counts the restart from now on, until it is complete or was given up.
func (c *controller) admit(w *Workload, replicas int32) bool {
	return c.rollouts.admit(w.key(), replicas)
}
