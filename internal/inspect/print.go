package inspect

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// shownNames is how many names a table lists before it only counts the rest.
const shownNames = 5

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
	for _, rule := range p.Unmatched {
		messages = append(messages, rule+": nothing is cloned, because the cluster has none of its sync.namespaces")
	}
	for _, rule := range slices.Sorted(maps.Keys(p.Stages)) {
		messages = append(messages, rule+": "+describeStages(p.Stages[rule]))
	}
	for _, message := range messages {
		_, _ = fmt.Fprintln(out, "\n"+message)
	}
	writeNotes(out, p.Notes)
	if !p.Changes() {
		_, _ = fmt.Fprintln(out, "\n"+p.unchanged())
	}
}

// unchanged is the last line if nothing would change: it counts held and refused
// steps.
func (p Plan) unchanged() string {
	count, later := map[plan.Action]int{}, 0
	for _, step := range p.Steps {
		if count[step.Action]++; step.Action == plan.Leave && step.Until != nil {
			later++
		}
	}
	var left []string
	if later > 0 {
		left = append(left, fmt.Sprintf("%d × later", later))
	}
	for _, action := range []plan.Action{plan.Hold, plan.Refuse} {
		if count[action] > 0 {
			left = append(left, fmt.Sprintf("%d × %s", count[action], action))
		}
	}
	switch {
	case len(left) == 0:
		return "Nothing would change."
	case len(left) == 1 && later > 0:
		return "Nothing would change now: " + left[0] + "."
	default:
		return "Nothing would change, but not all is well: " + strings.Join(left, ", ") + "."
	}
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
