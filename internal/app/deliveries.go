package app

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// maxShownDeliveries bounds the sources of a rule of which the page shows a delivery.
const maxShownDeliveries = 8

// deliveries report to the page how far revisions came.
type deliveries struct {
	rules func() *rules.Set[spec.Rule]
	sync  *sync.View
}

// Deliveries implements page.Subject.
func (d deliveries) Deliveries() page.Deliveries {
	shown := page.Deliveries{All: []page.Delivery{}, More: map[string]int{}}
	for _, rule := range d.rules().All() {
		if rule.Stages == nil {
			continue
		}
		states, more := d.sync.Deliveries(&rule, maxShownDeliveries)
		for _, state := range states {
			shown.All = append(shown.All, deliveryOf(&rule, state))
		}
		if more > 0 {
			shown.More[rule.Name] = more
		}
	}
	return shown
}

func deliveryOf(rule *spec.Rule, state survey.DeliveryState) page.Delivery {
	latest := state.Latest
	d := page.Delivery{
		Rule: rule.Name, Source: state.Source.String(),
		Revision: latest.Number, EditedBy: latest.EditedBy, Recorded: latest.Recorded,
		Verdict: string(latest.Verdict), Reason: latest.Reason, Stage: latest.Stage, StageSince: latest.StageSince,
		Paused: latest.Paused, Gate: gateInWords(rule.Stages.Gate), Stages: []page.Stage{},
	}
	if state.Wanted != nil {
		d.Wanted, d.RolledBack = state.Wanted.Number, state.Wanted.Pinned
	}
	if state.Stable != nil {
		d.Stable = state.Stable.Number
	}
	d.SoaksUntil, d.FailsAt, d.Waits = waitOfStep(latest, state.Step)
	for at, stage := range state.Stages {
		d.Stages = append(d.Stages, page.Stage{
			Name: stage.Name, Namespaces: stage.Namespaces, Have: stage.HaveWanted,
			Healthy: stage.Healthy, Pending: stage.Pending, Unhealthy: stage.Unhealthy,
			Soak: rule.Stages.Soak(at).Seconds(), Approval: rule.Stages.NeedsApproval(at),
		})
	}
	return d
}

// waitOfStep returns what a candidate waits for: the end of its soak time, or waits,
// and then until when at most.
func waitOfStep(candidate *delivery.Revision, step delivery.Step) (soaksUntil, failsAt time.Time, waits string) {
	gateHeld := !candidate.HealthySince.IsZero()
	switch {
	case step.Outcome == delivery.GateHolds, step.Outcome == delivery.Wait && gateHeld && !step.Until.IsZero():
		return step.Until, time.Time{}, ""
	case step.Outcome == delivery.Wait, step.Outcome == delivery.GateBroken:
		return time.Time{}, step.Until, step.Reason
	default:
		return time.Time{}, time.Time{}, ""
	}
}

// gateInWords says what must hold in a stage.
func gateInWords(gate spec.Gate) string {
	words := map[spec.Consumers]string{
		spec.GateHealthy: "consumers are healthy", spec.GateRestarted: "consumers run the revision", spec.GateNone: "clones are written",
	}[gate.Consumers]
	switch tolerated := gate.MaxUnhealthy; {
	case tolerated.Type == intstr.String:
		words += fmt.Sprintf(", but for %s of the namespaces at most", tolerated.StrVal)
	case tolerated.IntVal > 0:
		words += fmt.Sprintf(", but for %s at most", plural.Of(int(tolerated.IntVal), "namespace"))
	}
	return fmt.Sprintf("%s, within %s", words, duration.HumanDuration(gate.Timeout.Duration))
}
