package facts

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/sync/board"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// maxEmptied bounds the emptied sources that a RuleStatus names.
const maxEmptied = 50

// steered is what is known of the clones of one rule that people steer by.
type steered struct {
	// revisions counts the clones by the revision that they name.
	revisions map[object.Ref]map[int]int
	// removals counts the clones whose removal is held.
	removals int
	emptied  sets.Set[object.Ref]
}

// steered returns that of every rule.
func (r Source) steered() map[string]*steered {
	all := map[string]*steered{}
	r.Sync.Standings(func(s board.Standing, clones int) {
		of := all[s.Rule]
		if of == nil {
			of = &steered{map[object.Ref]map[int]int{}, 0, sets.Set[object.Ref]{}}
			all[s.Rule] = of
		}
		if s.Revision != 0 {
			if of.revisions[s.Source] == nil {
				of.revisions[s.Source] = map[int]int{}
			}
			of.revisions[s.Source][s.Revision] += clones
		}
		if s.Reason == plan.MassRemoval {
			of.removals += clones
		}
		if s.Reason == plan.SourceEmptied {
			of.emptied.Insert(s.Source)
		}
	})
	return all
}

// held returns what of rule waits for an approval.
func (r Source) held(rule string, sources []survey.SourceState, of *steered) *rulestatus.Held {
	held := &rulestatus.Held{Removals: of.removals}
	for _, source := range sources {
		if id, recorded := r.Sync.Emptied(rule, source.Ref); id != "" && (recorded || of.emptied.Has(source.Ref)) && len(held.Emptied) < maxEmptied {
			held.Emptied = append(held.Emptied, rulestatus.Emptied{Source: source.Ref.String(), Content: id})
		}
	}
	if held.Removals == 0 && len(held.Emptied) == 0 {
		return nil
	}
	return held
}

// complete adds to facts how far deliveries are, and what people steer the rule by.
func (r Source) complete(facts *rulestatus.Facts, rule string, sources []survey.SourceState, of *steered) {
	of = cmp.Or(of, &steered{})
	facts.Held, facts.Unjudged = r.held(rule, sources, of), sets.Set[string]{}
	waits, states := map[object.Ref]string{}, r.Sync.DeliveryStates(rule)
	facts.Delivery = deliveryOf(states)
	for _, state := range states {
		if state.Latest == nil || state.Latest.Verdict != revisions.Delivering {
			continue
		}
		if waits[state.Source] = state.Step.Reason; !state.Judged {
			facts.Unjudged.Insert(state.Source.String())
		}
	}
	var recorded []rulestatus.SourceRevisions
	for source, history := range r.Sync.Histories(rule) {
		recorded = append(recorded, rulestatus.SourceRevisions{Source: source, History: history, Clones: of.revisions[source], Waits: waits[source]})
	}
	kept := 0
	if found, isSynced := r.SyncRules.Load().Named(rule); isSynced && found.KeepsHistory() {
		kept = *found.History
	}
	if !facts.Removed || len(recorded) > 0 {
		facts.History = rulestatus.NewHistory(kept, recorded)
	}
}
