package deliverer

import (
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// judgement is the last step of a delivery in one of its stages.
type judgement struct {
	revision int
	stage    string
	since    time.Time
	at       time.Time
	step     delivery.Step
}

func (m *memory) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byKey = map[revisions.Key]remembered{}
}

// State is how far the delivery of one source came.
type State struct {
	// Without Stages: those would take a visit to every namespace.
	survey.DeliveryState

	// Stage is the number of the candidate's stage, from 1, of Stages.
	Stage, Stages int
	// Removed is true if the rule has no stages any more.
	Removed bool
	// Judged is false until this process has judged the candidate in its stage. Then Step
	// is the last judgement.
	Judged bool
}

// States returns the deliveries of rule by source. Of a rule whose stages were removed,
// these are the ones that did not pass.
func (d *Deliverer) States(rule string) []State {
	found, inForce := d.Reader.Live.Load().Named(rule)
	if !inForce || found.Stages == nil && !d.Reader.Revisions.Any(rule) {
		return nil
	}
	var states []State
	for _, ref := range d.Reader.Sources(found.Base) {
		source, _ := d.Reader.Caches.Sources.Get(ref)
		if source == nil {
			continue
		}
		if state := d.state(revisions.Key{Rule: rule, Source: ref}, found.Stages); state.Concerns(found.Stages) {
			states = append(states, state)
		}
	}
	slices.SortFunc(states, func(a, b State) int { return strings.Compare(a.Source.String(), b.Source.String()) })
	return states
}

func (d *Deliverer) state(key revisions.Key, stages *stages.Stages) State {
	found, _ := d.Reader.Delivery(key)
	state := State{DeliveryState: found, Removed: stages == nil}
	if candidate := found.Latest; stages != nil && candidate != nil && candidate.UnderWay() {
		state.Stage, state.Stages = stages.Index(candidate.Stage)+1, stages.Last()+1
		judged := d.memory.of(key).judged
		if state.Judged = judged.isOf(candidate); state.Judged {
			state.Step = judged.step
		}
	}
	return state
}
