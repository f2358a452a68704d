package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// problem is one clone that is not as it should be, or is retained.
type problem struct {
	Status    survey.Status `json:"standing"`
	Kind      object.Kind   `json:"kind"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Reason    plan.Reason   `json:"reason"`
	Message   string        `json:"message,omitempty"`
}

func (p problem) ref() object.Ref {
	return object.Ref{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
}

// generalMessage returns the message without the names of the clone and its
// namespace, so that equal messages about many clones can be grouped.
func (p problem) generalMessage() string {
	return strings.NewReplacer(p.ref().String(), string(p.Kind), fmt.Sprintf("%q", p.Namespace), `"NAMESPACE"`).Replace(p.Message)
}

func compareProblems(a, b problem) int {
	return cmp.Or(
		cmp.Compare(slices.Index(survey.Statuses, a.Status), slices.Index(survey.Statuses, b.Status)),
		cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// problemGroup is a group of problems with the same message.
type problemGroup struct {
	message string
	of      []problem
}

// groupProblems returns the groups in the order of their first problems.
func groupProblems(problems []problem) []*problemGroup {
	type key struct {
		standing survey.Status
		reason   plan.Reason
		message  string
	}
	var groups []*problemGroup
	known := map[key]*problemGroup{}
	for _, problem := range problems {
		k := key{problem.Status, problem.Reason, problem.generalMessage()}
		if known[k] == nil {
			known[k] = &problemGroup{message: problem.Message}
			groups = append(groups, known[k])
		} else {
			known[k].message = k.message
		}
		known[k].of = append(known[k].of, problem)
	}
	return groups
}

// table writes a paragraph about the group.
func (g *problemGroup) table(out io.Writer, rule string) {
	first := g.of[0]
	_, _ = fmt.Fprintf(out, "\n%s: %s %s (%s): %s\n", rule, plural.Of(len(g.of), "clone"), statusText(first.Status), first.Reason, problemNames(g.of))
	if g.message != "" {
		_, _ = fmt.Fprintf(out, "  %s\n", g.message)
	}
}

// problemNames lists the first problems by namespace and name.
func problemNames(problems []problem) string {
	var shown []string
	for _, problem := range problems[:min(len(problems), shownNames)] {
		shown = append(shown, problem.Namespace+"/"+problem.Name)
	}
	return andMore(shown, len(problems))
}

// andMore lists names and how many of total it leaves out.
func andMore(names []string, total int) string {
	text := strings.Join(names, ", ")
	if more := total - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// attention lists everything that needs attention: the reasons for which the status
// command exits 2, and for which its flag --wait waits. Retained clones need none.
func (s Status) attention() []string {
	var all []string
	if s.Leader.IsAbsent() {
		all = append(all, "no replica leads")
	}
	for _, namespace := range s.MissingNamespaces {
		all = append(all, fmt.Sprintf("namespace %s does not exist", namespace))
	}
	for _, rule := range s.Rules {
		for _, problem := range rule.attention() {
			all = append(all, "rule "+rule.Name+": "+problem)
		}
	}
	for _, p := range s.Protection {
		if p.Proven != nil && !*p.Proven {
			all = append(all, fmt.Sprintf("rule %s: protection is not proven: %s", p.Rule, p.Why))
		}
	}
	return all
}

func (r *ruleStatus) attention() []string {
	all := r.notDelivered()
	if r.Missing != "" {
		all = append(all, r.Missing)
	}
	for _, status := range survey.Statuses {
		if count := r.Clones[status]; count > 0 && !status.IsFine() {
			all = append(all, fmt.Sprintf("%s %s (%s)", plural.Of(count, "clone"), statusText(status), r.first(status)))
		}
	}
	return all
}

// notDelivered describes the deliveries that are not done.
func (r *ruleStatus) notDelivered() (all []string) {
	for _, delivery := range r.Deliveries {
		if delivery.State != rulestatus.DeliveryDelivered {
			all = append(all, "delivery: "+delivery.Describe())
		}
	}
	return all
}

// statusText is the status after a number of clones: "3 clones in conflict".
func statusText(status survey.Status) string {
	if status == survey.Conflicting {
		return "in conflict"
	}
	return string(status)
}

// first names the first problems with this status.
func (r *ruleStatus) first(status survey.Status) string {
	var of []problem
	for _, problem := range r.Problems {
		if problem.Status == status {
			of = append(of, problem)
		}
	}
	return problemNames(of)
}

// Plan is what the service would do if it started now.
type Plan struct {
	Steps []plannedStep `json:"steps"`
	// Missing are the rules without a source.
	Missing []missingSource `json:"missing,omitempty"`
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
}

// Plan returns what the rules would change.
func (i *Inspector) Plan(ctx context.Context) Plan {
	plan := Plan{Steps: []plannedStep{}, Missing: i.missing()}
	i.reader.Survey(i.maxFraction(), i.lookup(ctx), func(f survey.CloneStatus) {
		plan.Steps = append(plan.Steps, plannedStep{
			Rule: f.Rule, Source: f.Source.String(), Action: f.Decision.Action, Reason: f.Decision.Reason, Message: f.Decision.Message,
			Kind: f.Target.Kind, Namespace: f.Target.Namespace, Name: f.Target.Name,
		})
	})
	slices.SortStableFunc(plan.Steps, func(a, b plannedStep) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return plan
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
