package measure

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// batches is by how many lines a row of many samples is told, so that benchstat
// can say how far they scatter.
const batches = 10

// Unit is what a number counts.
type Unit struct {
	shown, name string
	times       float64 // how many of name there are in one of shown
}

// MiB is a unit of memory.
var MiB = Unit{shown: " MiB", name: "B", times: 1 << 20}

// MS is a time in milliseconds.
var MS = Unit{shown: " ms", name: "ns", times: 1e6}

// Plain is a unit that needs no mention in the table.
func Plain(name string) Unit { return Unit{name: name, times: 1} }

// results are what a row tells in Go's benchmark format.
type results struct {
	key         string
	ours, floor []result
}

// result is one line of it: so many operations, and what was measured of them.
type result struct {
	n      int
	values []value
}

type value struct {
	of   float64
	unit string
}

// rounds are one line for each.
func rounds(key string, ours, floor []time.Duration) results {
	r := results{key: key}
	for i, ratio := range Ratios(ours, floor) {
		r.ours = append(r.ours, result{1, []value{perOp(ours[i]), {ratio, "ratio"}}})
		r.floor = append(r.floor, result{1, []value{perOp(floor[i])}})
	}
	return r
}

// samples are one line for each batch of them, in the order in which they were
// taken.
func samples(key string, ours, floor []time.Duration) results {
	return results{key: key, ours: inBatches(ours), floor: inBatches(floor)}
}

func inBatches(all []time.Duration) []result {
	var lines []result
	for batch := range slices.Chunk(all, (len(all)+batches-1)/batches) {
		var sum time.Duration
		for _, one := range batch {
			sum += one
		}
		lines = append(lines, result{len(batch), []value{
			perOp(sum / time.Duration(len(batch))),
			{float64(Percentile(batch, 50)), "p50-ns"},
			{float64(Percentile(batch, 99)), "p99-ns"},
		}})
	}
	return lines
}

func single(key string, number float64, unit Unit) results {
	return results{key: key, ours: []result{{1, []value{{number * unit.times, unit.name}}}}}
}

func perOp(d time.Duration) value { return value{float64(d), "ns/op"} }

// WriteBenchmarks writes what is known of the rows in Go's benchmark format,
// which benchstat compares: see
// https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md.
// Only what does not differ between two runs that are to be compared is told of
// the machine.
func (t *Table) WriteBenchmarks(out io.Writer, pkg string) error {
	buffer := bufio.NewWriter(out)
	_, _ = fmt.Fprintf(buffer, "goos: %s\ngoarch: %s\npkg: %s\n", runtime.GOOS, runtime.GOARCH, pkg)
	if cpu := processor(); cpu != "" {
		_, _ = fmt.Fprintf(buffer, "cpu: %s\n", cpu)
	}
	for _, row := range t.rows {
		writeResults(buffer, t.Of, row.results.key, row.results.ours)
		writeResults(buffer, "Floor", row.results.key, row.results.floor)
	}
	return buffer.Flush()
}

func writeResults(out io.Writer, of, key string, lines []result) {
	for _, line := range lines {
		_, _ = fmt.Fprintf(out, "Benchmark%s/%s-%d %d", of, key, runtime.GOMAXPROCS(0), line.n)
		for _, value := range line.values {
			_, _ = fmt.Fprintf(out, " %s %s", strconv.FormatFloat(value.of, 'f', -1, 64), value.unit)
		}
		_, _ = fmt.Fprintln(out)
	}
}

// processor is the model's name, as Linux gives it.
func processor() string {
	content, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "" // another system
	}
	for line := range strings.Lines(string(content)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
