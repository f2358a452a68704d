package inspect

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/headwater-k8s/headwater/sync"
)

const (
	watchInterval = 250 * time.Millisecond
	barWidth      = 40
	// clearScreen is ECMA-48's: cursor home, erase to the end.
	clearScreen = "\x1b[H\x1b[J"
)

// Watch shows how far the clones of each rule have got until ctx ends. A
// terminal shows the latest state alone, another writer a line per change.
func (i *Inspector) Watch(ctx context.Context, out io.Writer, terminal bool) error {
	last := ""
	var failure error
	_ = wait.PollUntilContextCancel(ctx, watchInterval, true, func(ctx context.Context) (bool, error) {
		text := i.progress(ctx)
		if text == last {
			return false, nil
		}
		last = text
		if terminal {
			text = clearScreen + text
		}
		_, failure = fmt.Fprint(out, text)
		return failure != nil, nil
	})
	return failure
}

// progress is a line per rule.
func (i *Inspector) progress(ctx context.Context) string {
	var order []string
	counts := map[string]map[sync.Standing]int{}
	i.observer.Survey(i.maxFraction(), i.look(ctx), func(f sync.Finding) {
		if counts[f.Rule] == nil {
			counts[f.Rule] = map[sync.Standing]int{}
			order = append(order, f.Rule)
		}
		counts[f.Rule][f.Standing]++
	})
	var text strings.Builder
	for _, rule := range order {
		_, _ = fmt.Fprintln(&text, bar(rule, counts[rule]))
	}
	return text.String()
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
	done := barWidth * counts[sync.Current] / max(total, 1)
	return strings.TrimRight(fmt.Sprintf("%-20s [%s%s] %d/%d current  %s", rule,
		strings.Repeat("#", done), strings.Repeat("-", barWidth-done), counts[sync.Current], total, strings.Join(rest, ", ")), " ")
}
