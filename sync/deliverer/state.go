package deliverer

import (
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/revisions"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// judgement is the last step of a delivery in one of its stages.
type judgement struct {
	revision int
	stage    string
	step     delivery.Step
}

func (m *memory) judge(key revisions.Key, last judgement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.judged[key] = last
}

// judgementOf returns the last step of the delivery in its present stage.
func (m *memory) judgementOf(key revisions.Key, candidate *delivery.Revision) (step delivery.Step, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.judged[key]
	return last.step, known && last.revision == candidate.Number && last.stage == candidate.Stage
}

// State is how far the delivery of one source came.
type State struct {
	// Without Stages: those would take a visit to every namespace.
	survey.DeliveryState

	// Stage is the number of the candidate's stage, from 1, of Stages.
	Stage, Stages int
	// Judged is false until this process has judged the candidate in its stage. Then Step
	// is the last judgement.
	Judged bool
}

// States returns the deliveries of rule by source, without sources that are delivered
// at once because they are too large; none if the rule has no stages.
func (d *Deliverer) States(rule string) []State {
	found, inForce := d.reader.Live.Load().Named(rule)
	if !inForce || found.Stages == nil {
		return nil
	}
	var states []State
	for _, ref := range d.reader.Sources(found.Base) {
		source, _ := d.reader.Caches.Sources.Get(ref)
		if source == nil || delivery.TooLarge(source.Content, *found.History) {
			continue
		}
		states = append(states, d.state(revisions.Key{Rule: rule, Source: ref}, found.Stages))
	}
	slices.SortFunc(states, func(a, b State) int { return strings.Compare(a.Source.String(), b.Source.String()) })
	return states
}

func (d *Deliverer) state(key revisions.Key, stages *spec.Stages) State {
	found, _ := d.reader.Delivery(key)
	state := NewState(found, stages)
	if state.Stages > 0 {
		state.Step, state.Judged = d.memory.judgementOf(key, found.Latest)
	}
	return state
}

// NewState returns the State of a delivery that this process has not judged.
func NewState(found survey.DeliveryState, stages *spec.Stages) State {
	state := State{DeliveryState: found}
	if candidate := found.Latest; candidate != nil && candidate.UnderWay() {
		state.Stage, state.Stages = stages.Index(candidate.Stage)+1, stages.Last()+1
	}
	return state
}
