package delivery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Place is one namespace that the candidate has reached.
type Place struct {
	Namespace string
	// Stage is the index of its stage.
	Stage int
	// Reached is true if the clone has the candidate's content.
	Reached bool
	// Consumers is the report on the clone; its zero value if there is none for the
	// candidate.
	Consumers mark.ConsumersReport
	// NoConsumers is true if the clone is known to have none.
	NoConsumers bool
}

// Outcome is what becomes of a delivery now.
type Outcome string

// The values of Outcome.
const (
	// Wait: nothing changes before Step.Until, if that is not zero.
	Wait Outcome = "Wait"
	// GateHolds: the soak time starts.
	GateHolds Outcome = "GateHolds"
	// GateBroken: the soak time starts again when the gate holds again.
	GateBroken Outcome = "GateBroken"
	// NextStage: the next stage starts.
	NextStage Outcome = "NextStage"
	// Passed: every stage has passed.
	Passed Outcome = "Passed"
	// Failed: the gate did not hold; Step.Reason says why.
	Failed Outcome = "Failed"
)

// Step is the result of Advance.
type Step struct {
	Outcome Outcome
	// Until is when time alone changes the outcome of Wait, GateHolds or GateBroken;
	// zero if it does not.
	Until time.Time
	// Reason is why it waits or failed, in names only.
	Reason string
	// NeedsApproval is true if it waits for `headwater promote`.
	NeedsApproval bool
}

// shownPlaces is how many namespaces a reason names.
const shownPlaces = 3

// Advance decides what becomes of the candidate, which is Delivering. places are
// the namespaces of every stage that it has reached, without those that cannot get
// a clone at all.
func Advance(stages *spec.Stages, candidate *Revision, places []Place, now time.Time) Step {
	gate := stages.Gate
	waiting, unhealthy := judge(gate, places)
	if len(unhealthy) > gate.Tolerates(len(places)) {
		return Step{Outcome: Failed, Reason: listed(unhealthy, "unhealthy")}
	}
	timeout := candidate.StageSince.Add(gate.Timeout.Duration)
	if len(waiting) > 0 {
		return notYet(candidate, timeout, listed(waiting, "not ready"), now)
	}
	index := stages.Index(candidate.Stage)
	soak := stages.Soak(index)
	if candidate.HealthySince.IsZero() && soak > 0 {
		return Step{Outcome: GateHolds, Until: now.Add(soak)}
	}
	if soaked := candidate.HealthySince.Add(soak); now.Before(soaked) {
		return Step{Outcome: Wait, Until: soaked, Reason: "soaking until " + soaked.UTC().Format(time.RFC3339)}
	}
	switch {
	case candidate.Paused != "":
		return Step{Outcome: Wait, Reason: "paused " + candidate.Paused}
	case stages.NeedsApproval(index) && candidate.Approved == "":
		return Step{Outcome: Wait, NeedsApproval: true, Reason: fmt.Sprintf("stage %s passed; waits for `headwater promote %s`", candidate.Stage, candidate.Rule)}
	case index == stages.Last():
		return Step{Outcome: Passed}
	default:
		return Step{Outcome: NextStage}
	}
}

// notYet is the step of a delivery whose gate does not hold.
func notYet(candidate *Revision, timeout time.Time, reason string, now time.Time) Step {
	if candidate.Paused != "" {
		timeout = time.Time{} // a paused delivery does not time out
	}
	switch {
	case !timeout.IsZero() && !now.Before(timeout):
		return Step{Outcome: Failed, Reason: "timeout of stage " + candidate.Stage + ": " + reason}
	case !candidate.HealthySince.IsZero():
		return Step{Outcome: GateBroken, Until: timeout, Reason: reason}
	default:
		return Step{Outcome: Wait, Until: timeout, Reason: reason}
	}
}

// judge returns the places that the gate still waits for, and the unhealthy ones,
// each with the reason.
func judge(gate spec.Gate, places []Place) (waiting, unhealthy []string) {
	for _, place := range places {
		switch health, reason := place.Judge(gate); health {
		case mark.ConsumersPending:
			waiting = append(waiting, place.Namespace+" ("+reason+")")
		case mark.ConsumersUnhealthy:
			unhealthy = append(unhealthy, place.Namespace+" ("+reason+")")
		default:
		}
	}
	return waiting, unhealthy
}

// Judge returns how the place does in the eyes of gate, and why if it is not Healthy.
func (p Place) Judge(gate spec.Gate) (health mark.ConsumersHealth, reason string) {
	report := p.Consumers
	switch {
	case !p.Reached:
		return mark.ConsumersPending, "no clone of it yet"
	case gate.Consumers == spec.GateNone, report.Health == "" && p.NoConsumers:
		return mark.ConsumersHealthy, ""
	case report.Health == "":
		return mark.ConsumersPending, "no report on its consumers yet"
	case report.Health == mark.ConsumersUnhealthy && gate.Consumers != spec.GateHealthy:
		return mark.ConsumersHealthy, ""
	default:
		return report.Health, report.Reason
	}
}

// listed names the first places, sorted.
func listed(places []string, are string) string {
	slices.Sort(places)
	text := fmt.Sprintf("%s %s: %s", plural.Of(len(places), "namespace"), are, strings.Join(places[:min(len(places), shownPlaces)], ", "))
	if more := len(places) - shownPlaces; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
