package inspect

import (
	"cmp"
	"context"
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Plan is what the service would do if it started now.
type Plan struct {
	Steps []PlannedStep `json:"steps"`
	// Missing are the rules without a source.
	Missing []Missing `json:"missing,omitempty"`
}

// Missing is a rule without a source.
type Missing struct {
	Rule string `json:"rule"`
	What string `json:"what"`
}

// PlannedStep is what the service would do about one clone.
type PlannedStep struct {
	Rule      string      `json:"rule"`
	Source    string      `json:"source"`
	Action    plan.Action `json:"action"`
	Reason    plan.Reason `json:"reason"`
	Kind      object.Kind `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Message   string      `json:"message,omitempty"`
}

// Plan returns what the rules would change.
func (i *Inspector) Plan(ctx context.Context) Plan {
	plan := Plan{Steps: []PlannedStep{}, Missing: i.missing()}
	i.reader.Survey(i.maxFraction(), i.lookup(ctx), func(f survey.CloneStatus) {
		plan.Steps = append(plan.Steps, PlannedStep{
			Rule: f.Rule, Source: f.Source.String(), Action: f.Decision.Action, Reason: f.Decision.Reason, Message: f.Decision.Message,
			Kind: f.Target.Kind, Namespace: f.Target.Namespace, Name: f.Target.Name,
		})
	})
	slices.SortStableFunc(plan.Steps, func(a, b PlannedStep) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return plan
}

func (i *Inspector) missing() []Missing {
	var missing []Missing
	for _, base := range i.bases {
		if what := i.reader.MissingSource(base); what != "" {
			missing = append(missing, Missing{base.Name, what})
		}
	}
	return missing
}

// Changes reports whether any step writes.
func (p Plan) Changes() bool {
	return slices.ContainsFunc(p.Steps, func(s PlannedStep) bool { return plan.Decision{Action: s.Action}.Writes() })
}
