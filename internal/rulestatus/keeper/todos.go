package keeper

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

// Todos returns what is to be done about the rules in force, in their order, and then about
// those that only have a RuleStatus. It reads the RuleStatuses as the cluster has them, as
// `headwater status` does. It may be called concurrently. known is false while no RuleStatus
// is kept here.
func (k *Keeper) Todos() (todos []rulestatus.Todo, known bool) {
	view := k.shown.Load()
	if view == nil {
		return nil, false
	}
	rules := k.source.Rules()
	inForce := sets.New(rules...)
	for _, object := range view.List() {
		if !inForce.Has(object.Name) {
			rules = append(rules, object.Name)
		}
	}
	slices.Sort(rules[inForce.Len():])
	for _, rule := range rules {
		status := &rulestatus.Status{}
		if object, exists := view.Get("", rule); exists {
			status = &object.Status
		}
		if todo, is := status.Todo(rule); is {
			todos = append(todos, todo)
		}
	}
	return todos, true
}
