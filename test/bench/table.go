package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// verdict says whether a row keeps its budget.
type verdict string

const (
	ok   verdict = "ok"
	over verdict = "OVER"
)

func judge(within bool) verdict {
	if within {
		return ok
	}
	return over
}

// row is one result, as it is printed. What does not apply is empty.
type row struct {
	what, value, floor, ratio, budget string
	verdict                           verdict
}

// table collects the rows.
type table struct {
	title string
	rows  []row
}

// add keeps r, and shows it to whoever waits for the table.
func (t *table) add(r row) {
	t.rows = append(t.rows, r)
	progress("%s: %s, floor %s, ratio %s, budget %s: %s", r.what, r.value, r.floor, r.ratio, r.budget, r.verdict)
}

// ratio adds a row that is judged by how ours compares with floor.
func (t *table) ratio(what string, ours, floor []time.Duration, budget float64) {
	all := ratios(ours, floor)
	middle := median(all)
	t.add(row{
		what: what, value: inMS(median(ours)), floor: inMS(median(floor)),
		ratio:  fmt.Sprintf("%.2f (%.2f–%.2f)", middle, slices.Min(all), slices.Max(all)),
		budget: fmt.Sprintf("ratio %.2f", budget), verdict: judge(middle <= budget),
	})
}

// latency adds a row that is judged by the 99th percentile of ours.
func (t *table) latency(what string, ours, floor []time.Duration, budget time.Duration) {
	p99 := percentile(ours, 99)
	t.add(row{
		what: what, value: spread(ours), floor: spread(floor),
		ratio:  fmt.Sprintf("%.2f", p99.Seconds()/percentile(floor, 99).Seconds()),
		budget: "p99 " + inMS(budget), verdict: judge(p99 <= budget),
	})
}

// added adds a row that is judged by what ours has on top of floor, at the
// 99th percentile.
func (t *table) added(what string, ours, floor []time.Duration, budget time.Duration) {
	more := percentile(ours, 99) - percentile(floor, 99)
	t.add(row{
		what: what, value: spread(ours), floor: spread(floor),
		ratio:  fmt.Sprintf("p50 %+.1f, p99 %+.1f ms", ms(percentile(ours, 50)-percentile(floor, 50)), ms(more)),
		budget: "p99 +" + inMS(budget), verdict: judge(more <= budget),
	})
}

// tail adds a row that is judged by how the 99th percentiles compare.
func (t *table) tail(what string, ours, floor []time.Duration, budget float64) {
	ratio := percentile(ours, 99).Seconds() / percentile(floor, 99).Seconds()
	t.add(row{
		what: what, value: spread(ours), floor: spread(floor),
		ratio:  fmt.Sprintf("%.2f, p50 %+.1f ms", ratio, ms(percentile(ours, 50)-percentile(floor, 50))),
		budget: fmt.Sprintf("ratio %.2f", budget), verdict: judge(ratio <= budget),
	})
}

// within adds a row that is judged by its median.
func (t *table) within(what string, ours, floor []time.Duration, budget time.Duration) {
	t.add(row{
		what: what, value: inMS(median(ours)), floor: inMS(median(floor)),
		ratio:  fmt.Sprintf("%.2f", median(ratios(ours, floor))),
		budget: inMS(budget), verdict: judge(median(ours) <= budget),
	})
}

// count adds a row of a number of which at most budget is allowed.
func (t *table) count(what string, value, budget float64, unit string) {
	t.add(row{
		what: what, value: fmt.Sprintf("%.4g%s", value, unit),
		budget: fmt.Sprintf("%.4g%s", budget, unit), verdict: judge(value <= budget),
	})
}

func (t *table) over() bool {
	return slices.ContainsFunc(t.rows, func(r row) bool { return r.verdict == over })
}

func (t *table) print(out io.Writer) error {
	_, _ = fmt.Fprintf(out, "%s\n\n", t.title)
	columns := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	header := row{"what", "value", "floor", "ratio", "budget", "verdict"}
	for _, r := range append([]row{header}, t.rows...) {
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.value, r.floor, r.ratio, r.budget, r.verdict)
	}
	return columns.Flush()
}

func spread(values []time.Duration) string {
	return fmt.Sprintf("p50 %.1f, p99 %.1f, max %.1f ms", ms(percentile(values, 50)), ms(percentile(values, 99)), ms(slices.Max(values)))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func inMS(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

func progress(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, format+"\n", args...)
}
