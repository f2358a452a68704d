package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// shownNames is how many names a table lists before it only counts the rest.
const shownNames = 5

// Table writes a row per rule, the first problems of each, and a row per protection.
func (s Status) Table(out *output.Writer) {
	if s.Leader.IsAbsent() {
		_, _ = fmt.Fprintln(out, s.Leader.Describe()+"\n")
	}
	if len(s.Rules) == 0 {
		_, _ = fmt.Fprintln(out, "no rule clones anything here")
	} else {
		s.rules(out)
	}
	for _, namespace := range s.MissingNamespaces {
		_, _ = fmt.Fprintf(out, "\nnamespace %s does not exist\n", namespace)
	}
	for _, rule := range s.Rules {
		if rule.Missing != "" {
			_, _ = fmt.Fprintf(out, "\n%s: %s\n", rule.Name, rule.Missing)
		}
		for _, delivery := range rule.notDelivered() {
			_, _ = fmt.Fprintf(out, "\n%s: %s\n", rule.Name, delivery)
		}
		for _, group := range groupProblems(rule.Problems) {
			group.table(out, rule.Name)
		}
	}
	s.retained(out)
	protections(out, s.Protection, s.Leader)
	writeNotes(out, s.Notes)
}

// rules writes a row per rule.
func (s Status) rules(out *output.Writer) {
	columns := []string{"RULE", "SOURCES", "CLONES"}
	shown := []survey.Status{survey.Current, survey.Behind, survey.Drifting, survey.Conflicting, survey.Held, survey.Failed}
	for _, status := range survey.Statuses {
		if !slices.Contains(shown, status) && (out.Wide() || slices.ContainsFunc(s.Rules, func(r *ruleStatus) bool { return r.Clones[status] > 0 })) {
			shown = append(shown, status)
		}
	}
	for _, status := range shown {
		columns = append(columns, strings.ToUpper(string(status)))
	}
	var rows [][]string
	for _, rule := range s.Rules {
		row := []string{rule.title(), rule.sourceCount(), fmt.Sprint(rule.total())}
		for _, status := range shown {
			row = append(row, fmt.Sprint(rule.Clones[status]))
		}
		rows = append(rows, append(row, rule.lastChange(), rule.sourceNames()))
	}
	out.Rows(rows, append(columns, "LAST CHANGE"), "SOURCE")
}

// retained writes a paragraph per rule with retained clones.
func (s Status) retained(out io.Writer) {
	for _, rule := range s.Rules {
		for _, group := range groupProblems(rule.Retained) {
			group.table(out, rule.Name)
			if group.of[0].Reason == plan.RuleRemoved {
				_, _ = fmt.Fprintf(out, "  the rule no longer exists: `headwater release %[1]s` removes Headwater's marks from them, `headwater prune %[1]s` deletes them\n", rule.Name)
			}
		}
	}
}

func (r *ruleStatus) title() string {
	if r.Removed {
		return r.Name + " (removed)"
	}
	return r.Name
}

func (r *ruleStatus) sourceCount() string {
	missing := 0
	for _, source := range r.Sources {
		if !source.Exists {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Sprintf("%d (%d missing)", len(r.Sources), missing)
	}
	return fmt.Sprint(len(r.Sources))
}

// sourceNames lists the sources by kind, namespace and name.
func (r *ruleStatus) sourceNames() string {
	var names []string
	for _, source := range r.Sources {
		names = append(names, source.Source)
	}
	return orDash(strings.Join(names, ","))
}

// Names lists the rules.
func (s Status) Names() []string {
	var names []string
	for _, rule := range s.Rules {
		names = append(names, rule.Name)
	}
	return names
}

// lastChange describes the change of the source that changed last.
func (r *ruleStatus) lastChange() string {
	var last sourceStatus
	for _, source := range r.Sources {
		if source.LastChange != nil && (last.LastChange == nil || source.LastChange.After(*last.LastChange)) {
			last = source
		}
	}
	if last.LastChange == nil {
		return "-"
	}
	text := ago(*last.LastChange)
	// The Event may be about an earlier change, or have expired.
	if last.Propagation == nil || last.Propagation.At.Before(*last.LastChange) {
		return text
	}
	took := time.Duration(last.Propagation.Seconds * float64(time.Second))
	return fmt.Sprintf("%s, to %s in %s", text, plural.Of(last.Propagation.Clones, "clone"), took)
}

// Table writes a row per rule, action and reason.
func (p Plan) Table(out *output.Writer) {
	var rows [][]string
	var messages []string
	for rest := p.Steps; len(rest) > 0; {
		first := rest[0]
		end := slices.IndexFunc(rest, func(s plannedStep) bool {
			return s.Rule != first.Rule || s.Action != first.Action || s.Reason != first.Reason
		})
		if end < 0 {
			end = len(rest)
		}
		rows = append(rows, []string{first.Rule, string(first.Action), string(first.Reason), fmt.Sprint(end), stepNames(rest[:end], out.Wide())})
		if first.Message != "" {
			messages = append(messages, fmt.Sprintf("%s, %s: %s", first.Rule, first.Reason, first.Message))
		}
		rest = rest[end:]
	}
	if len(p.Steps) > 0 {
		out.Rows(rows, []string{"RULE", "ACTION", "REASON", "COUNT", "CLONES"})
	}
	for _, missing := range p.Missing {
		messages = append(messages, missing.Rule+": "+missing.What)
	}
	for _, message := range messages {
		_, _ = fmt.Fprintln(out, "\n"+message)
	}
	if !p.Changes() {
		_, _ = fmt.Fprintln(out, "\n"+p.unchanged())
	}
}

// unchanged is the last line if nothing would change: it counts held and refused
// steps.
func (p Plan) unchanged() string {
	count := map[plan.Action]int{}
	for _, step := range p.Steps {
		count[step.Action]++
	}
	var left []string
	for _, action := range []plan.Action{plan.Hold, plan.Refuse} {
		if count[action] > 0 {
			left = append(left, fmt.Sprintf("%d × %s", count[action], action))
		}
	}
	if len(left) == 0 {
		return "Nothing would change."
	}
	return "Nothing would change, but not all is well: " + strings.Join(left, ", ") + "."
}

// Names lists the clones that would be written, and those that need attention.
func (p Plan) Names() []string {
	var names []string
	for _, step := range p.Steps {
		names = append(names, object.Ref{Kind: step.Kind, Namespace: step.Namespace, Name: step.Name}.String())
	}
	return names
}

func stepNames(steps []plannedStep, all bool) string {
	first := min(len(steps), shownNames)
	if all {
		first = len(steps)
	}
	var shown []string
	for _, step := range steps[:first] {
		shown = append(shown, step.Namespace+"/"+step.Name)
	}
	return andMore(shown, len(steps))
}

func ago(at time.Time) string { return duration.HumanDuration(time.Since(at)) + " ago" }

func writeNotes(out io.Writer, notes []string) {
	for _, note := range notes {
		_, _ = fmt.Fprintln(out, "\nnote:", note)
	}
}
