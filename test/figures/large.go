package figures

import (
	"fmt"
	"strconv"
	"strings"
)

// largeLine is a line of the table about a large cluster.
type largeLine struct {
	key, what string
	show      func(unit string, v Values) string
	// predicted is the row of the run "cost" that predicts it; empty without one.
	predicted string
}

func p99(unit string, v Values) string { return "p99 " + in(unit, v.P99) }

// Rows of the run "cost" that predict a large cluster.
const (
	PredictedResident = "cost/predicted/resident"
	PredictedChange   = "cost/predicted/change"
)

func largeLines() []largeLine {
	return []largeLine{
		{"start/clones=100000", "start to ready", median, ""},
		{"memory/highest/clones=100000/unrelated=10000", "highest resident memory since that start", median, PredictedResident},
		{"fan-out/clones=10000", "change of one source, to its last clone", median, PredictedChange},
		{"heal/deleted", "clone deleted, until it is restored", p99, ""},
		{"heal/edited", "clone edited, until it is restored", p99, ""},
		{"new-namespace/meanwhile/clones=10000", "new namespace, until it has a clone of each source, during such a change", p99, ""},
		{"failover/stopped", "leader stopped, until the first write of the next leader", atMost, ""},
		{"failover/killed", "leader killed, until the first write of the next leader", atMost, ""},
		{"views/scrape/clones=100000", "CPU time of a scrape", median, ""},
		{"views/status/clones=100000", "`headwater status`", median, ""},
		{"views/page/clones=100000", "page opened, until it shows all clones", median, ""},
	}
}

// large compares what was measured in a large cluster with what the costs predict.
func large(f File) (string, error) {
	run, start, err := f.row("large", "start/clones=100000")
	if err != nil {
		return "", err
	}
	_, change, err := f.row("large", "fan-out/clones=10000")
	if err != nil {
		return "", err
	}
	var rows [][]string
	for _, line := range largeLines() {
		cells, err := f.largeCells(line)
		if err != nil {
			return "", err
		}
		rows = append(rows, cells)
	}
	return fmt.Sprintf("Measured on %s with `%s`, on %s: %s clones of %d sources, of 1 KiB each.\n\n%s", run.day(), run.Command, run.Machine,
		start.size("clones"), int(start.count("clones")/change.count("clones")), table([]string{"what", "Headwater", "bare client", "predicted"}, rows)), nil
}

func (f File) largeCells(line largeLine) ([]string, error) {
	_, row, err := f.row("large", line.key)
	if err != nil {
		return nil, err
	}
	cells := []string{line.what, line.show(row.Unit, row.Value), "-", "-"}
	if row.Floor != nil {
		cells[2] = line.show(row.Unit, *row.Floor)
	}
	if line.predicted != "" {
		_, predicted, err := f.row("cost", line.predicted)
		if err != nil {
			return nil, err
		}
		cells[3] = in(predicted.Unit, predicted.Value.Median)
	}
	return cells, nil
}

// count is size as a number; 0 if the key has none of that name.
func (r Row) count(name string) float64 {
	number, err := strconv.ParseFloat(strings.ReplaceAll(r.size(name), ",", ""), 64)
	if err != nil {
		return 0
	}
	return number
}
