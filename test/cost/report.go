package main

import (
	"fmt"
	"math"
	"strings"
)

// report writes a model as Markdown.
type report struct {
	head   string
	model  *model
	limits []limit
}

// scenarios are the clusters to predict.
func scenarios() []scenario {
	return []scenario{
		{"100,000 clones: 10 sources of 1 KiB in 10,000 namespaces", 10, 10_000, 1 << 10},
		{"100,000 clones: 10 sources of 10 KiB in 10,000 namespaces", 10, 10_000, 10 << 10},
		{"10 sources of 1 MB in 1,000 namespaces", 10, 1000, 1e6},
		{"10 sources of 1 MB in 10,000 namespaces", 10, 10_000, 1e6},
	}
}

// markdown returns all sections.
func (r report) markdown() string {
	return strings.Join([]string{
		r.head, "### Memory and storage", r.held(), "### Cost of work", r.work(), "### Cost of a larger payload", r.payload(),
		"### How well the lines predict", r.trials(), "### Larger clusters", r.forecasts(), "### Which limit is reached first", r.strains(),
		"### Recommended settings", r.settings(),
	}, "\n\n")
}

// cell returns a slope with its standard error and R².
func (r report) cell(per driver, of quantity) string {
	if len(r.model.points[entry{per, of}]) == 0 {
		return "-"
	}
	l := r.model.line(per, of)
	text := amount(of, l.slope)
	if !math.IsNaN(l.stderr) {
		text += fmt.Sprintf(" ± %s (%.3f)", amount(of, l.stderr), l.r2)
	}
	return text
}

// matrix has a row for each driver, and a column for each quantity.
func (r report) matrix(head string, drivers []driver, quantities []quantity) string {
	header := []string{head}
	for _, of := range quantities {
		header = append(header, string(of))
	}
	var rows [][]string
	for _, per := range drivers {
		row := []string{string(per)}
		for _, of := range quantities {
			row = append(row, r.cell(per, of))
		}
		rows = append(rows, row)
	}
	return table(header, rows)
}

func (r report) held() string {
	return r.matrix("one more", []driver{perClone, perNamespace, perSecret, perConsumer, perRule},
		[]quantity{heap, resident, apiHeap, etcdSize, startRead, startAsks, scrape})
}

func (r report) work() string {
	return r.matrix("for each", []driver{perSync, perWrite, perRestart, perJudged, perBare},
		[]quantity{wall, ownCPU, apiCPU, etcdCPU, requests, revision, wal, received, sent})
}

func (r report) payload() string {
	var rows [][]string
	for _, of := range []quantity{heap, resident, apiHeap, etcdSize, startRead, revision, wal, ownCPU, apiCPU, etcdCPU, wall} {
		l := r.model.line(perByte, of)
		what, factor := "clone", digits(l.slope)+" bytes per byte"
		if of == heap || of == resident {
			what = "source"
		}
		if unitOf(of) == inSeconds {
			factor = seconds(l.slope*mib) + " per MiB"
		}
		rows = append(rows, []string{string(of), what, factor, fmt.Sprintf("%.3f", l.r2)})
	}
	return table([]string{"what", "of each", "grows by", "R²"}, rows)
}

func (r report) trials() string {
	var rows [][]string
	for _, e := range []entry{
		{perClone, heap},
		{perClone, resident},
		{perClone, apiHeap},
		{perClone, etcdSize},
		{perWrite, wall},
		{perWrite, ownCPU},
		{perWrite, apiCPU},
		{perWrite, revision},
		{perByte, apiHeap},
		{perByte, etcdSize},
	} {
		t, ok := tryOut(r.model.points[e])
		if !ok {
			continue
		}
		rows = append(rows, []string{
			string(e.of), count(t.x) + " × " + string(e.per), amount(e.of, t.foretold), amount(e.of, t.measured), fmt.Sprintf("%+.0f %%", 100*t.off()),
		})
	}
	return table([]string{"what", "at", "predicted from smaller sizes", "measured", "off by"}, rows)
}

func (r report) forecasts() string {
	var rows [][]string
	for _, s := range scenarios() {
		f := r.model.foretell(s)
		rows = append(rows, []string{
			s.what, bytes(f.heap), bytes(f.resident), bytes(f.apiHeap), bytes(f.apiResident), bytes(f.etcd), bytes(f.change),
			seconds(f.wall), seconds(f.ownCPU), seconds(f.apiCPU),
		})
	}
	return table([]string{
		"cluster", string(heap), string(resident), string(apiHeap), "resident before garbage collection", string(etcdSize),
		"a change adds, until the next compaction", "a change takes", string(ownCPU), string(apiCPU),
	}, rows)
}

func (r report) strains() string {
	header := []string{"cluster"}
	for _, l := range r.limits {
		header = append(header, l.what)
	}
	var rows [][]string
	for _, s := range scenarios() {
		all := r.model.strains(s, r.limits)
		row := []string{s.what}
		for _, one := range all {
			row = append(row, fmt.Sprintf("%s %% (full at %s)", digits(100*one.share), clones(one.clones)))
		}
		rows = append(rows, append(row, first(all).limit.what))
	}
	return table(append(header, "first"), rows)
}

func clones(n float64) string {
	if math.IsInf(n, 1) {
		return "never"
	}
	return count(n) + " clones"
}

func (r report) settings() string {
	var rows [][]string
	for _, s := range scenarios() {
		a := advise(r.model.foretell(s))
		quota := fmt.Sprintf("%.0f (%s)", a.quota, bytes(a.quota))
		if a.beyond {
			quota = "more than etcd supports: " + bytes(a.quota)
		}
		rows = append(rows, []string{
			s.what, quota, bytes(a.api), fmt.Sprintf("%.0fMi", a.memory/mib),
		})
	}
	return table([]string{
		"cluster", "etcd `--quota-backend-bytes`", "memory for each API server, in addition to its other work", "chart `resources.limits.memory`",
	}, rows)
}

// table is one of Markdown.
func table(header []string, rows [][]string) string {
	var out strings.Builder
	line := func(cells []string) { _, _ = fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | ")) }
	line(header)
	_, _ = out.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
