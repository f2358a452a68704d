package reported

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Report is the state of rules.
type Report struct {
	inspect.Confirmation

	Rules []ruleReport `json:"rules"`
	// Attention lists what is not ready; empty if every rule is.
	Attention []string `json:"attention,omitempty"`
}

// ruleReport is the state of one rule.
type ruleReport struct {
	Name string `json:"name"`
	rulestatus.Status
}

// ready returns the condition Ready, which is unknown until the service has written it.
func (r ruleReport) ready() metav1.Condition {
	if condition := r.Condition(rulestatus.Ready); condition != nil {
		return *condition
	}
	return metav1.Condition{Type: rulestatus.Ready, Status: metav1.ConditionUnknown, Reason: "NotReported"}
}

func (r Report) attention() []string {
	all := r.Confirmation.Attention()
	if len(r.Rules) == 0 {
		all = append(all, "no rule has a RuleStatus")
	}
	for _, rule := range r.Rules {
		if todo, is := rule.Todo(rule.Name); is {
			all = append(all, fmt.Sprintf("rule %s: %s", rule.Name, cmp.Or(todo.Message, todo.Reason)))
		}
	}
	return all
}

// Names lists the rules.
func (r Report) Names() []string {
	var names []string
	for _, rule := range r.Rules {
		names = append(names, rule.Name)
	}
	return names
}

// Table writes a row per rule, and what each rule that is not ready needs.
func (r Report) Table(out *output.Writer) {
	r.Confirmation.Table(out)
	if len(r.Rules) == 0 {
		_, _ = fmt.Fprintln(out, "no rule has a RuleStatus")
		return
	}
	rows := make([][]string, 0, len(r.Rules))
	for _, rule := range r.Rules {
		rows = append(rows, rule.row())
	}
	out.Rows(rows, []string{"RULE", "READY", "REASON", "SOURCES", "CLONES", "CURRENT", "ATTENTION", "PROTECTION", "DELIVERY", "LAST CHANGE"}, "SOURCE", "REVISION")
	for _, rule := range r.Rules {
		rule.details(out)
	}
	for _, rule := range r.Rules {
		if valid := rule.Condition(rulestatus.ConfigurationValid); valid != nil && valid.Reason == rulestatus.NotCompared {
			_, _ = fmt.Fprintf(out, "\nrevision %s of the configuration: %s\n", rule.ConfigurationRevision, valid.Message)
			return
		}
	}
}

func (r ruleReport) row() []string {
	ready := r.ready()
	row := []string{r.title(), string(ready.Status), ready.Reason}
	var names []string
	if sources := r.Sources; sources != nil {
		count := strconv.Itoa(sources.Total)
		if sources.Missing > 0 {
			count += fmt.Sprintf(" (%d missing)", sources.Missing)
		}
		row = append(row, count)
		for _, source := range sources.First {
			names = append(names, source.Kind+"/"+source.Namespace+"/"+source.Name)
		}
	} else {
		row = append(row, none)
	}
	if clones := r.Clones; clones != nil {
		total := strconv.Itoa(clones.Total)
		if retained := clones.ByState[string(survey.Retained)]; retained > 0 {
			total += fmt.Sprintf(" (and %d retained)", retained)
		}
		if clones.Waiting > 0 {
			total += fmt.Sprintf(" (and %d to be deleted)", clones.Waiting)
		}
		row = append(row, total, strconv.Itoa(clones.Current), strconv.Itoa(clones.NeedAttention))
	} else {
		row = append(row, none, none, none)
	}
	return append(row, cmp.Or(r.Protection, none), r.deliveryState(), r.changed(),
		cmp.Or(strings.Join(names, ","), none), cmp.Or(r.ConfigurationRevision, none))
}

// none is the cell of what a rule does not have.
const none = "-"

func (r ruleReport) title() string {
	if r.Removed {
		return r.Name + " (removed)"
	}
	return r.Name
}

func (r ruleReport) deliveryState() string {
	if r.Delivery == nil {
		return none
	}
	return r.Delivery.State
}

func (r ruleReport) changed() string {
	if r.LastChange == nil {
		return none
	}
	text := duration.HumanDuration(time.Since(r.LastChange.Time)) + " ago"
	if last := r.LastPropagation; last != nil && !last.Completed.Before(r.LastChange) {
		text += fmt.Sprintf(", to %s in %s", plural.Of(last.Clones, "clone"), last.Duration)
	}
	return text
}

// details writes why the rule is not ready, how far its delivery is, and its problems.
func (r ruleReport) details(out *output.Writer) {
	if todo, is := r.Todo(r.Name); is && todo.Message != "" {
		_, _ = fmt.Fprintf(out, "\n%s: %s\n", r.Name, todo.Message)
		if todo.Command != "" {
			_, _ = fmt.Fprintf(out, "  run `%s`\n", todo.Command)
		}
	}
	if d := r.Delivery; d != nil && d.State != rulestatus.DeliveryDelivered {
		_, _ = fmt.Fprintf(out, "\n%s: delivery: %s\n", r.Name, d.Describe())
	}
	for _, problem := range r.Problems {
		_, _ = fmt.Fprintf(out, "\n%s: %s %s (%s): %s\n", r.Name, plural.Of(problem.Clones, "clone"), problem.State, problem.Reason, namespaces(problem))
		if problem.Message != "" {
			_, _ = fmt.Fprintf(out, "  %s\n", problem.Message)
		}
	}
	if r.MoreProblems > 0 {
		_, _ = fmt.Fprintf(out, "\n%s: %d more kinds of problems; `headwater plan` looks at every clone\n", r.Name, r.MoreProblems)
	}
}

// namespaces lists the first namespaces of problem, and counts the other clones.
func namespaces(problem rulestatus.Problem) string {
	text := "in " + strings.Join(problem.Namespaces, ", ")
	if more := problem.Clones - len(problem.Namespaces); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
