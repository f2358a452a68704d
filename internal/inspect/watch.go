package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/sync"
)

const (
	watchInterval = 250 * time.Millisecond
	barWidth      = 40
	// clearScreen is ECMA-48's: cursor home, erase to the end.
	clearScreen = "\x1b[H\x1b[J"
)

// Progress is how far the clones of each rule have got.
type Progress struct {
	Rules []RuleProgress `json:"rules"`
}

// RuleProgress is how many clones of a rule stand how.
type RuleProgress struct {
	Name   string                `json:"name"`
	Clones map[sync.Standing]int `json:"clones"`
}

// Watch shows how far the clones of each rule have got until ctx ends. A
// terminal shows the latest state of a table alone, another writer each that
// there is: JSON as a line, YAML as a document.
func (i *Inspector) Watch(ctx context.Context, out io.Writer, format Format, terminal bool) error {
	last := ""
	var failure error
	_ = wait.PollUntilContextCancel(ctx, watchInterval, true, func(ctx context.Context) (bool, error) {
		var text string
		if text, failure = i.progress(ctx).frame(format, terminal); failure == nil && text != last {
			last = text
			_, failure = io.WriteString(out, text)
		}
		return failure != nil, nil
	})
	return failure
}

func (i *Inspector) progress(ctx context.Context) Progress {
	progress := Progress{Rules: []RuleProgress{}}
	counts := map[string]map[sync.Standing]int{}
	of := func(rule string) map[sync.Standing]int {
		if counts[rule] == nil {
			counts[rule] = map[sync.Standing]int{}
			progress.Rules = append(progress.Rules, RuleProgress{rule, counts[rule]})
		}
		return counts[rule]
	}
	for _, rule := range i.rules.All() {
		of(rule.Name)
	}
	i.observer.Survey(i.maxFraction(), i.look(ctx), func(f sync.Finding) { of(f.Rule)[f.Standing]++ })
	return progress
}

// frame is what is written of p.
func (p Progress) frame(format Format, terminal bool) (string, error) {
	switch format {
	case JSON:
		text, err := json.Marshal(p)
		return string(text) + "\n", err
	case YAML:
		text, err := yaml.Marshal(p)
		return "---\n" + string(text), err
	default:
		var table strings.Builder
		if terminal {
			table.WriteString(clearScreen)
		}
		p.Table(&table)
		return table.String(), nil
	}
}

// Table writes a bar per rule.
func (p Progress) Table(out io.Writer) {
	if len(p.Rules) == 0 {
		_, _ = fmt.Fprintln(out, "no rule clones anything")
	}
	for _, rule := range p.Rules {
		_, _ = fmt.Fprintln(out, bar(rule.Name, rule.Clones))
	}
}

func bar(rule string, counts map[sync.Standing]int) string {
	total := 0
	var rest []string
	for _, standing := range sync.Standings {
		total += counts[standing]
		if standing != sync.Current && counts[standing] > 0 {
			rest = append(rest, fmt.Sprintf("%d %s", counts[standing], standing))
		}
	}
	if total == 0 {
		return fmt.Sprintf("%-20s no clones yet", rule)
	}
	done := barWidth * counts[sync.Current] / total
	return strings.TrimRight(fmt.Sprintf("%-20s [%s%s] %d/%d current  %s", rule,
		strings.Repeat("#", done), strings.Repeat("-", barWidth-done), counts[sync.Current], total, strings.Join(rest, ", ")), " ")
}
