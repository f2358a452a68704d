package app

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// maxShownDeliveries bounds the sources of a rule of which the page shows a delivery.
const maxShownDeliveries = 8

// Deliveries implements page.Subject.
func (s subject) Deliveries() page.Deliveries {
	shown := page.Deliveries{All: []page.Delivery{}, More: map[string]int{}}
	for _, rule := range s.Reloader.in.Sync.Load().All() {
		if rule.Stages == nil {
			continue
		}
		states, more := s.Sync.Deliveries(&rule, maxShownDeliveries)
		for _, state := range states {
			shown.All = append(shown.All, deliveryOf(&rule, state, time.Now()))
		}
		if more > 0 {
			shown.More[rule.Name] = more
		}
	}
	return shown
}

func deliveryOf(rule *spec.Rule, state survey.DeliveryState, now time.Time) page.Delivery {
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
	d.SoaksUntil, d.FailsAt, d.Waits = waitOfStep(state.Step, now)
	for at, stage := range state.Stages {
		d.Stages = append(d.Stages, page.Stage{
			Name: stage.Name, Namespaces: stage.Namespaces, Have: stage.HaveWanted,
			Healthy: stage.Evidence.Ran + stage.Evidence.Refreshed, Pending: stage.Evidence.Waiting, Unhealthy: stage.Evidence.Failed,
			Soak: rule.Stages.Soak(at).Seconds(), Approval: rule.Stages.NeedsApproval(at),
		})
	}
	return d
}

// waitOfStep returns what a candidate waits for: the end of its soak time, or waits, and
// then until when at most, if consumers are waited for.
func waitOfStep(step delivery.Step, now time.Time) (soaksUntil, failsAt time.Time, waits string) {
	switch {
	case step.Outcome == "":
		return time.Time{}, time.Time{}, ""
	case step.State == delivery.Holding && step.Left > 0:
		return now.Add(step.Left), time.Time{}, ""
	case step.State == delivery.Waiting && step.Left > 0:
		return time.Time{}, now.Add(step.Left), step.Reason
	default:
		return time.Time{}, time.Time{}, step.Reason
	}
}

// gateInWords says what must hold in a stage.
func gateInWords(gate stages.Gate) string {
	words := map[stages.Consumers]string{
		stages.GateHealthy: "consumers are healthy", stages.GateRestarted: "consumers run the revision", stages.GateNone: "clones are written",
	}[gate.Consumers]
	switch tolerated := gate.MaxUnhealthy; {
	case tolerated != nil && tolerated.Type == intstr.String:
		words += fmt.Sprintf(", but for %s of the namespaces at most", tolerated.StrVal)
	case tolerated != nil && tolerated.IntVal > 0:
		words += fmt.Sprintf(", but for %s at most", plural.Of(int(tolerated.IntVal), "namespace"))
	}
	return fmt.Sprintf("%s, within %s", words, duration.HumanDuration(gate.Timeout.Duration))
}
