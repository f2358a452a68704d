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

	"github.com/headwater-k8s/headwater/internal/output"
)

const (
	watchInterval = 250 * time.Millisecond
	// readEvery is how often a watch sends the requests of a reading.
	readEvery = 2 * time.Second
	// tellEvery is the minimum time between two messages about what Wait waits for.
	tellEvery = 2 * time.Second
	// clearScreen is ECMA-48's: cursor home, erase to the end.
	clearScreen = "\x1b[H\x1b[J"
)

// follow calls take with the Status of every watchInterval, until take returns
// true, an error occurs or ctx ends.
func (i *Inspector) follow(ctx context.Context, scope Scope, take func(Status) (done bool, err error)) error {
	var read reading
	return wait.PollUntilContextCancel(ctx, watchInterval, true, func(ctx context.Context) (bool, error) {
		if time.Since(read.at) >= readEvery {
			read = i.read(ctx)
		}
		status, err := i.status(ctx, scope, read)
		if err != nil || ctx.Err() != nil {
			return false, err
		}
		return take(status)
	})
}

// Watch writes the Status and the time whenever the Status changed, until ctx ends.
// A terminal shows only the latest table. Other outputs get one after the other:
// JSON as a line, YAML as a document.
func (i *Inspector) Watch(ctx context.Context, scope Scope, out io.Writer, options output.Options, terminal bool) error {
	last := ""
	err := i.follow(ctx, scope, func(status Status) (bool, error) {
		frame, err := status.frame(options, terminal, time.Now())
		if err != nil {
			return false, err
		}
		shown := frame
		if !terminal || !options.Format.IsTable() { // ignore changes of times alone
			if shown, err = status.facts(); err != nil {
				return false, err
			}
		}
		if shown != last {
			last = shown
			_, err = io.WriteString(out, frame)
		}
		return false, err
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the caller ended the watch
	}
	return err
}

// frame returns what Watch writes for s.
func (s Status) frame(options output.Options, terminal bool, now time.Time) (string, error) {
	switch {
	case options.Format == output.JSON:
		text, err := json.Marshal(s)
		return string(text) + "\n", err
	case options.Format == output.YAML:
		text, err := yaml.Marshal(s)
		return "---\n" + string(text), err
	case !options.Format.IsTable():
		return options.Text(s)
	default:
		var table strings.Builder
		if terminal {
			table.WriteString(clearScreen)
		}
		table.WriteString(now.Format(time.RFC3339) + "\n")
		s.Table(options.Writer(&table))
		if !terminal {
			table.WriteString("\n")
		}
		return table.String(), nil
	}
}

// facts returns s as text, without times that change on their own.
func (s Status) facts() (string, error) {
	protection := make([]Protection, 0, len(s.Protection))
	for _, p := range s.Protection {
		p.Tried = nil
		protection = append(protection, p)
	}
	s.Protection = protection
	text, err := json.Marshal(s)
	return string(text), err
}

// Wait returns the first Status that needs no attention, or the last one after
// timeout or when ctx ends. A timeout of 0 means no limit. Wait writes to progress
// what it waits for.
func (i *Inspector) Wait(ctx context.Context, scope Scope, timeout time.Duration, progress io.Writer) (last Status, err error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var events time.Time
	said := ""
	err = i.follow(ctx, scope, func(status Status) (bool, error) {
		last = status
		text := strings.Join(status.Attention, "; ")
		if text != "" && text != said && time.Since(events) >= tellEvery {
			said, events = text, time.Now()
			_, _ = fmt.Fprintln(progress, "waiting for:", text)
		}
		return text == "", nil
	})
	if ctx.Err() != nil && last.Rules != nil {
		return last, nil
	}
	if err != nil {
		return last, fmt.Errorf("read the state: %w", err)
	}
	return last, nil
}
