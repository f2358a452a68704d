package kyverno

import (
	"encoding/json"
	"slices"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

// condition is one that a deny or a precondition asks, in the form that is understood.
type condition struct {
	Key      string          `json:"key"`
	Operator string          `json:"operator"`
	Value    json.RawMessage `json:"value"`
}

// operations are those that f matches and that the preconditions let through, if
// these ask for nothing else; none are what Kyverno asks for by itself.
func (r kyvernoRule) operations(f filter) ([]string, error) {
	matched := f.Resources.Operations
	named, _ := conditioned(r.Preconditions) // those that ask for more, see unconditional
	if named == nil {
		return matched, nil
	}
	both := slices.DeleteFunc(named, func(operation string) bool { return len(matched) > 0 && !slices.Contains(matched, operation) })
	if len(both) == 0 {
		return matched, ir.Because(ir.NoOperationLeft)
	}
	return both, nil
}

// conditioned are the operations that the conditions of a deny, or
// preconditions, name; nil: it has none, and means all.
func conditioned(raw json.RawMessage) ([]string, error) {
	if !given(raw) {
		return nil, nil
	}
	var list []condition
	if err := json.Unmarshal(raw, &list); err != nil {
		var block struct {
			Any []condition `json:"any"`
			All []condition `json:"all"`
			// Conditions are how some write the same one level deeper.
			Conditions json.RawMessage `json:"conditions"`
		}
		err := json.Unmarshal(raw, &block)
		if err == nil && given(block.Conditions) && len(block.Any)+len(block.All) == 0 {
			return conditioned(block.Conditions)
		}
		if err != nil || len(block.Any)+len(block.All) != 1 {
			return nil, ir.Because(ir.ConditionsMore)
		}
		list = slices.Concat(block.Any, block.All)
	}
	if len(list) != 1 || !isVariable(list[0].Key, "request.operation", "request.operation || ''", "request.operation || 'BACKGROUND'") {
		return nil, ir.Because(ir.ConditionsMore)
	}
	return operationsOf(list[0])
}

// operationsOf are the operations that a condition on the operation leaves.
func operationsOf(c condition) ([]string, error) {
	var values []string
	if err := json.Unmarshal(c.Value, &values); err != nil {
		var one string
		if err := json.Unmarshal(c.Value, &one); err != nil {
			return nil, ir.Because(ir.ConditionsMore)
		}
		values = []string{one}
	}
	switch c.Operator {
	case "Equals", "Equal", "In", "AnyIn", "AllIn":
		return values, nil
	case "NotEquals", "NotEqual", "NotIn", "AnyNotIn", "AllNotIn":
		return slices.DeleteFunc([]string{"CREATE", "UPDATE", "DELETE", "CONNECT"}, func(operation string) bool {
			return slices.Contains(values, operation)
		}), nil
	default:
		return nil, ir.Because(ir.ConditionsMore)
	}
}
