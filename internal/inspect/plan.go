package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/explain"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// watchInterval is how often a command that waits reads the state again.
const watchInterval = 250 * time.Millisecond

// andMore lists names and how many of total it leaves out.
func andMore(names []string, total int) string {
	text := strings.Join(names, ", ")
	if more := total - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Plan is what the service would do if it started now.
type Plan struct {
	Steps []plannedStep `json:"steps"`
	// Missing are the rules without a source.
	Missing []missingSource `json:"missing,omitempty"`
	// Unmatched are the rules whose source no namespace gets.
	Unmatched []string `json:"unmatched,omitempty"`
	// Stages are those of the rules with a delivery, by rule.
	Stages map[string][]stageSize `json:"stages,omitempty"`
	// Notes say what is not known, and why.
	Notes []string `json:"notes,omitempty"`
}

// missingSource is a rule without a source.
type missingSource struct {
	Rule string `json:"rule"`
	What string `json:"what"`
}

// plannedStep is what the service would do about one clone.
type plannedStep struct {
	Rule      string      `json:"rule"`
	Source    string      `json:"source"`
	Action    plan.Action `json:"action"`
	Reason    plan.Reason `json:"reason"`
	Kind      object.Kind `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Message   string      `json:"message,omitempty"`
	// Until is when a hold ends, or a removal is due, by itself.
	Until *time.Time `json:"until,omitempty"`
}

// Plan returns what the rules would change.
func (i *Inspector) Plan(ctx context.Context) (Plan, error) {
	plan := Plan{Steps: []plannedStep{}, Missing: i.missing(), Stages: map[string][]stageSize{}}
	consumers, err := i.consumers(ctx, &plan)
	if err != nil {
		return plan, err
	}
	for _, rule := range i.rules.All() {
		stages, err := i.stages(ctx, &rule, consumers)
		if err != nil {
			return plan, err
		}
		if stages != nil {
			plan.Stages[rule.Name] = stages
		}
	}
	i.reader.Survey(i.maxFraction(), i.lookup(ctx), func(f survey.CloneStatus) {
		step := plannedStep{
			Rule: f.Rule, Source: f.Source.String(), Action: f.Decision.Action, Reason: f.Decision.Reason, Message: f.Decision.Message,
			Kind: f.Target.Kind, Namespace: f.Target.Namespace, Name: f.Target.Name,
		}
		if !f.Decision.Until.IsZero() {
			step.Until = &f.Decision.Until
		}
		plan.Steps = append(plan.Steps, step)
	})
	for _, rule := range i.rules.All() {
		missing := slices.ContainsFunc(plan.Missing, func(m missingSource) bool { return m.Rule == rule.Name })
		if !missing && !slices.ContainsFunc(plan.Steps, func(s plannedStep) bool { return s.Rule == rule.Name }) {
			plan.Unmatched = append(plan.Unmatched, rule.Name)
		}
	}
	slices.SortStableFunc(plan.Steps, func(a, b plannedStep) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return plan, nil
}

// consumers returns what finds the consumers of stages; nil if no stage needs any, or if the
// user may not read them.
func (i *Inspector) consumers(ctx context.Context, plan *Plan) (*explain.Explainer, error) {
	if !slices.ContainsFunc(i.rules.All(), func(rule spec.Rule) bool { return rule.Stages.NeedsEvidence() }) {
		return nil, nil
	}
	missing, err := kube.MissingPermissions(ctx, i.clients.Typed, consumerPermissions())
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		plan.Notes = append(plan.Notes, "how many consumers the stages have is not shown, because you may not read them: "+strings.Join(kube.LinesOf(missing), "; "))
		return nil, nil
	}
	return i.openReload(ctx, i.options, "", "")
}

func (i *Inspector) missing() []missingSource {
	var missing []missingSource
	for _, base := range i.bases {
		if what := i.reader.MissingSource(base); what != "" {
			missing = append(missing, missingSource{base.Name, what})
		}
	}
	return missing
}

// Changes reports whether any step writes.
func (p Plan) Changes() bool {
	return slices.ContainsFunc(p.Steps, func(s plannedStep) bool { return plan.Decision{Action: s.Action}.Writes() })
}
