package measure

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headwater-k8s/headwater/test/figures"
)

// Verdict says whether a row keeps its budget; empty where nothing is judged.
type Verdict string

// The verdicts.
const (
	OK   Verdict = "ok"
	Over Verdict = "OVER"
)

func judge(within bool) Verdict {
	if within {
		return OK
	}
	return Over
}

// Name is what a row is called: Key in Go's benchmark format, words parted by
// slashes, and What to people.
type Name struct{ Key, What string }

// Row is one result, as it is printed. What does not apply is empty.
type Row struct {
	What, Value, Floor, Ratio, Budget string
	Verdict                           Verdict
	results                           results
	figure                            figures.Row
}

// Table collects the rows.
type Table struct {
	// Title stands above it. Of is whose values they are, in Go's benchmark
	// format: one word that begins with a capital.
	Title, Of string
	rows      []Row
}

// Add appends r and reports it as progress.
func (t *Table) Add(r Row) {
	t.rows = append(t.rows, r)
	Progress("%s", strings.Join(slices.DeleteFunc(r.cells(), func(cell string) bool { return cell == "" }), " | "))
}

// Ratio adds a row that is judged by how ours compares with floor.
func (t *Table) Ratio(name Name, ours, floor []time.Duration, budget float64) {
	r := compared(name, ours, floor)
	r.Budget, r.Verdict = fmt.Sprintf("ratio %.2f", budget), judge(Median(Ratios(ours, floor)) <= budget)
	t.Add(r)
}

// Compared adds a row of rounds that is not judged.
func (t *Table) Compared(name Name, ours, floor []time.Duration) { t.Add(compared(name, ours, floor)) }

func compared(name Name, ours, floor []time.Duration) Row {
	all := Ratios(ours, floor)
	return Row{
		What: name.What, Value: inMS(Median(ours)), Floor: inMS(Median(floor)),
		Ratio:   fmt.Sprintf("rounds %.2f (%.2f–%.2f)", Median(all), slices.Min(all), slices.Max(all)),
		results: rounds(name.Key, ours, floor), figure: figureOfRounds(ours, floor),
	}
}

// Latency adds a row that is judged by the 99th percentile of ours.
func (t *Table) Latency(name Name, ours, floor []time.Duration, budget time.Duration) {
	r := spreads(name, ours, floor)
	r.Budget, r.Verdict = "p99 "+inMS(budget), judge(Percentile(ours, 99) <= budget)
	t.Add(r)
}

// Spreads adds a row of samples that is not judged.
func (t *Table) Spreads(name Name, ours, floor []time.Duration) { t.Add(spreads(name, ours, floor)) }

// spreads compares the medians and the 99th percentiles.
func spreads(name Name, ours, floor []time.Duration) Row {
	return Row{
		What: name.What, Value: Spread(ours), Floor: Spread(floor),
		Ratio:   fmt.Sprintf("p50 %.2f, p99 %.2f", Percentile(ours, 50).Seconds()/Percentile(floor, 50).Seconds(), tails(ours, floor)),
		results: samples(name.Key, ours, floor), figure: figureOfSamples(ours, floor),
	}
}

// Instead adds a row of something that could not be measured: what happened, and
// the floor as far as it was measured.
func (t *Table) Instead(name Name, happened string, floor []time.Duration) {
	r := Row{What: name.What, Value: happened, results: results{key: name.Key}, figure: figures.Row{Unit: "ms", Outcome: happened}}
	if len(floor) > 0 {
		values := valuesOf(floor)
		r.Floor, r.figure.Floor = inMS(Median(floor)), &values
	}
	t.Add(r)
}

// Alone adds a row of samples that have no floor.
func (t *Table) Alone(name Name, ours []time.Duration) {
	t.Add(Row{What: name.What, Value: Spread(ours), results: results{key: name.Key, ours: inBatches(ours)}, figure: figureOfSamples(ours, nil)})
}

func tails(ours, floor []time.Duration) float64 {
	return Percentile(ours, 99).Seconds() / Percentile(floor, 99).Seconds()
}

// Added adds a row that is judged by what ours has on top of floor, at the
// 99th percentile.
func (t *Table) Added(name Name, ours, floor []time.Duration, budget time.Duration) {
	more := Percentile(ours, 99) - Percentile(floor, 99)
	r := spreads(name, ours, floor)
	r.Ratio = fmt.Sprintf("p50 %+.1f, p99 %+.1f ms", ms(Percentile(ours, 50)-Percentile(floor, 50)), ms(more))
	r.Budget, r.Verdict = "p99 +"+inMS(budget), judge(more <= budget)
	t.Add(r)
}

// Tail adds a row that is judged by how the 99th percentiles compare.
func (t *Table) Tail(name Name, ours, floor []time.Duration, budget float64) {
	r := spreads(name, ours, floor)
	r.Ratio += fmt.Sprintf(", p50 %+.1f ms", ms(Percentile(ours, 50)-Percentile(floor, 50)))
	r.Budget, r.Verdict = fmt.Sprintf("ratio %.2f", budget), judge(tails(ours, floor) <= budget)
	t.Add(r)
}

// Within adds a row that is judged by its median.
func (t *Table) Within(name Name, ours, floor []time.Duration, budget time.Duration) {
	r := compared(name, ours, floor)
	r.Budget, r.Verdict = inMS(budget), judge(Median(ours) <= budget)
	t.Add(r)
}

// AtMost adds a row that is judged by the longest of ours.
func (t *Table) AtMost(name Name, ours, floor []time.Duration, budget time.Duration) {
	r := compared(name, ours, floor)
	r.Value, r.Floor = longest(ours), longest(floor)
	r.Budget, r.Verdict = "max "+inMS(budget), judge(slices.Max(ours) <= budget)
	t.Add(r)
}

func longest(values []time.Duration) string {
	return fmt.Sprintf("median %s, max %s", inMS(Median(values)), inMS(slices.Max(values)))
}

// Count adds a row of a number of which at most budget is allowed.
func (t *Table) Count(name Name, value, budget float64, unit Unit) {
	r := number(name, value, unit)
	r.Budget, r.Verdict = fmt.Sprintf("%.4g%s", budget, unit.shown), judge(value <= budget)
	t.Add(r)
}

// Number adds a row of a number that is not judged.
func (t *Table) Number(name Name, value float64, unit Unit) { t.Add(number(name, value, unit)) }

// Beside adds a row of a number beside another of its kind that is not judged.
func (t *Table) Beside(name Name, value, floor float64, unit Unit) {
	t.Add(beside(name, value, floor, unit))
}

// BesideWithin adds a row that is judged by how a number compares with another of its kind.
func (t *Table) BesideWithin(name Name, value, floor, budget float64, unit Unit) {
	r := beside(name, value, floor, unit)
	r.Budget, r.Verdict = fmt.Sprintf("ratio %.2f", budget), judge(value/floor <= budget)
	t.Add(r)
}

func beside(name Name, value, floor float64, unit Unit) Row {
	r := number(name, value, unit)
	r.Floor, r.Ratio = fmt.Sprintf("%.4g%s", floor, unit.shown), fmt.Sprintf("%.2f", value/floor)
	return r
}

func number(name Name, value float64, unit Unit) Row {
	return Row{What: name.What, Value: fmt.Sprintf("%.4g%s", value, unit.shown), results: single(name.Key, value, unit), figure: figureOfNumber(value, unit)}
}

// Over says whether any row is over its budget.
func (t *Table) Over() bool {
	return slices.ContainsFunc(t.rows, func(r Row) bool { return r.Verdict == Over })
}

// Print writes the table for people, without columns that no row has anything in.
func (t *Table) Print(out io.Writer) error {
	_, _ = fmt.Fprintf(out, "%s\n\n", t.Title)
	header := Row{What: "what", Value: "value", Floor: "floor", Ratio: "ratio", Budget: "budget", Verdict: "verdict"}
	used := make([]bool, len(header.cells()))
	for _, r := range t.rows {
		for i, cell := range r.cells() {
			used[i] = used[i] || cell != ""
		}
	}
	columns := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, r := range append([]Row{header}, t.rows...) {
		var cells []string
		for i, cell := range r.cells() {
			if used[i] {
				cells = append(cells, cell)
			}
		}
		_, _ = fmt.Fprintln(columns, strings.Join(cells, "\t"))
	}
	return columns.Flush()
}

func (r Row) cells() []string {
	return []string{r.What, r.Value, r.Floor, r.Ratio, r.Budget, string(r.Verdict)}
}

// Spread is what matters of many samples, in words.
func Spread(values []time.Duration) string {
	return fmt.Sprintf("p50 %.1f, p99 %.1f, max %.1f ms", ms(Percentile(values, 50)), ms(Percentile(values, 99)), ms(slices.Max(values)))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func inMS(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// Progress tells those who wait for the table.
func Progress(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// Report ends a run that had this outcome: what was measured is printed to out
// and, unless file is empty, written there in Go's benchmark format, whether or
// not it went well.
func (t *Table) Report(outcome error, out io.Writer, file, pkg string) error {
	outcome = errors.Join(outcome, t.Print(out))
	if file == "" {
		return outcome
	}
	written, err := os.Create(file)
	if err != nil {
		return errors.Join(outcome, fmt.Errorf("write the benchmarks: %w", err))
	}
	if err := errors.Join(t.WriteBenchmarks(written, pkg), written.Close()); err != nil {
		return errors.Join(outcome, fmt.Errorf("write the benchmarks: %w", err))
	}
	return outcome
}
