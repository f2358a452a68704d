package scenario

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Narrator tells a story as it happens: chapters, steps with the time each
// took, and a table at the end.
type Narrator struct {
	out     io.Writer
	colour  bool
	started time.Time
	rows    []row
	chapter string
}

type row struct {
	chapter, step string
	took          time.Duration
}

// NewNarrator writes to out, with colours if told so.
func NewNarrator(out io.Writer, colour bool) *Narrator {
	return &Narrator{out: out, colour: colour, started: time.Now()}
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

func (n *Narrator) paint(code, text string) string {
	if !n.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Chapter opens a chapter.
func (n *Narrator) Chapter(title string) {
	n.chapter = title
	n.printf("\n%s\n", n.paint(bold, title))
}

// Say adds a line of its own.
func (n *Narrator) Say(format string, args ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		n.printf("%s%s\n", strings.Repeat(" ", 14), n.paint(dim, line))
	}
}

// Step carries one step out, and tells whether it came out as it says and how
// long that took.
func (n *Narrator) Step(ctx context.Context, what string, do func(context.Context) error) error {
	began := time.Now()
	err := do(ctx)
	took := time.Since(began)
	clock := n.paint(dim, fmt.Sprintf("%7.2fs", time.Since(n.started).Seconds()))
	if err != nil {
		n.printf("%s  %s  %s\n%s%s\n", clock, n.paint(red, "✗"), what, strings.Repeat(" ", 14), n.paint(red, err.Error()))
		return fmt.Errorf("%s: %w", what, err)
	}
	n.rows = append(n.rows, row{n.chapter, what, took})
	n.printf("%s  %s  %s %s\n", clock, n.paint(green, "✓"), what, n.paint(cyan, "("+short(took)+")"))
	return nil
}

// Summary prints every step with its time.
func (n *Narrator) Summary() {
	width := 0
	for _, row := range n.rows {
		width = max(width, len([]rune(row.step)))
	}
	n.printf("\n%s\n", n.paint(bold, "Summary"))
	chapter := ""
	for _, row := range n.rows {
		if row.chapter != chapter {
			chapter = row.chapter
			n.printf("  %s\n", n.paint(cyan, chapter))
		}
		n.printf("    %-*s  %9s  %s\n", width, row.step, short(row.took), n.paint(green, "ok"))
	}
	n.printf("\n%s\n", n.paint(bold, fmt.Sprintf("%d steps, all as promised, in %s.", len(n.rows), short(time.Since(n.started)))))
}

func (n *Narrator) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(n.out, format, args...)
}

func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
