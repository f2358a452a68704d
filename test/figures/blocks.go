package figures

import (
	"fmt"
	"math"
	"strings"
)

// Documents are those that state figures.
var Documents = []string{"README.md", "deploy/COMPARISON.md", "deploy/COSTS.md", "deploy/PERFORMANCE.md", "deploy/SCALING.md", "deploy/helm/headwater/values.yaml"}

// blocks make what stands between the marks of this name.
var blocks = map[string]func(File) (string, error){
	"headline":   headline,
	"summary":    summary,
	"rollouts":   rollouts,
	"containers": containers,
	"loaded":     loaded,
	"cost":       costs("cost"),
	"settings":   costs("settings"),
	"large":      large,
	"resources":  resources,
	"peers":      peers,
}

// line is a line of the summary.
type line struct {
	kind, key string
	// what is its name, with sizes of its key in the places of %s.
	what  string
	sizes []string
	show  func(unit string, v Values) string
}

func median(unit string, v Values) string { return in(unit, v.Median) }

var summaryLines = []line{
	{"refresh", "refresh/pods=10", "source edited, until running containers read the new file, %s pods", []string{"pods"}, median},
	{"fan-out", "fan-out/clones=100", "source edited, until the last of %s clones is written", []string{"clones"}, median},
	{"fan-out", "fan-out/clones=1000", "the same with %s clones", []string{"clones"}, median},
	{"fan-out", "fan-out/clones=10000", "the same with %s clones", []string{"clones"}, median},
	{"unprotected-fan-out", "unprotected-fan-out/clones=1000", "the same with %s clones that are not protected", []string{"clones"}, median},
	{"restarts", "restarts/together/templates=1000", "object edited, until the last of %s Deployments in one namespace is restarted", []string{"templates"}, median},
	{"failover", "failover/stopped", "leader stopped, until the first write of the next leader", nil, atMost},
	{"failover", "failover/killed", "leader killed, until the first write of the next leader", nil, atMost},
	{"memory", "memory/resident/clones=10000/unrelated=50000", "resident memory with %s clones and %s other Secrets", []string{"clones", "unrelated"}, median},
}

func summary(f File) (string, error) {
	var rows [][]string
	for _, line := range summaryLines {
		run, row, err := f.row(line.kind, line.key)
		if err != nil {
			return "", err
		}
		var sizes []any
		for _, name := range line.sizes {
			sizes = append(sizes, row.size(name))
		}
		what, floor := fmt.Sprintf(line.what, sizes...), "-"
		if row.Floor != nil {
			floor = line.show(row.Unit, *row.Floor)
		}
		rows = append(rows, []string{what, line.show(row.Unit, row.Value), floor, row.Ratio.String(), "`" + run.Command + "`", run.day()})
	}
	text := table([]string{"median of", "Headwater", "bare client", "ratio of rounds", "command", "measured on"}, rows)
	if _, alone, err := f.row("refresh", "refresh/unasked/pods=60"); err == nil {
		text += fmt.Sprintf("\n\nWithout Headwater, a container reads a change after %s (median).", median(alone.Unit, alone.Value))
	}
	return text, nil
}

// headline is the few figures that the README states.
func headline(f File) (string, error) {
	_, spread, err := f.row("fan-out", "fan-out/clones=1000")
	if err != nil {
		return "", err
	}
	_, refresh, err := f.row("refresh", "refresh/pods=10")
	if err != nil {
		return "", err
	}
	_, alone, err := f.row("refresh", "refresh/unasked/pods=60")
	if err != nil {
		return "", err
	}
	_, memory, err := f.row("memory", "memory/resident/clones=10000/unrelated=50000")
	if err != nil {
		return "", err
	}
	return strings.Join([]string{
		fmt.Sprintf("- An edit of a source reaches the last of %s clones in %s. A bare client that writes the same objects takes %s.",
			spread.size("clones"), median(spread.Unit, spread.Value), median(spread.Unit, *spread.Floor)),
		fmt.Sprintf("- A running container reads the new file after %s. The kubelet alone takes %s.",
			median(refresh.Unit, refresh.Value), median(alone.Unit, alone.Value)),
		fmt.Sprintf("- With %s clones and %s other Secrets, Headwater uses %s of memory.",
			memory.size("clones"), memory.size("unrelated"), median(memory.Unit, memory.Value)),
	}, "\n"), nil
}

func rollouts(f File) (string, error) {
	run, row, err := f.row("rollouts", "rollouts/deployments=1000")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("On %s, `%s` rolled out %s Deployments after one edit in %s.",
		run.day(), run.Command, row.size("deployments"), in(row.Unit, row.Value.Median)), nil
}

func containers(f File) (string, error) {
	run := f.Runs["refresh"]
	var rows [][]string
	samples := 0
	for _, row := range run.Rows {
		cells := []string{held(row), fmt.Sprint(row.Samples), whole(row.Value.Median), whole(row.Value.P99), "", ""}
		if row.Floor != nil {
			samples += row.Samples
			cells[4], cells[5] = whole(row.Floor.Median), whole(row.Floor.P99)
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		return "", fmt.Errorf("%s has no run refresh", Name)
	}
	return table([]string{"the node runs", "samples", "median", "p99", "kubelet's own share: median", "p99"}, rows) +
		fmt.Sprintf("\n\nMeasured on %s by `%s`, on %s: %d samples with Headwater.", run.day(), run.Command, run.Machine, samples), nil
}

// held says which pods the node of a row of refresh runs.
func held(row Row) string {
	what := row.size("pods") + " pods that mount it"
	if strings.Contains(row.Key, "churning=") {
		what += ", and " + row.size("churning") + " that keep starting and ending"
	}
	if strings.Contains(row.Key, "unasked") {
		what += ", without Headwater"
	}
	return what
}

func loaded(f File) (string, error) {
	run, row, err := f.row("refresh-loaded", "refresh/pods=10")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("On %s, the median of the first row was %s, and %s for the bare client.",
		run.Machine, in(row.Unit, row.Value.Median), in(row.Unit, row.Floor.Median)), nil
}

// settingsFrom is the heading in the text of the costs with which that begins what an
// operator needs first.
const settingsFrom = "### Recommended settings"

// costs returns the block "settings", the part of the costs from settingsFrom on
// without its heading, or "cost", the part before.
func costs(name string) func(File) (string, error) {
	return func(f File) (string, error) {
		run, _, err := f.row("cost", clonesCPU)
		if err != nil {
			return "", err
		}
		before, after, found := strings.Cut(strings.Join(run.Text, "\n"), settingsFrom)
		if !found {
			return "", fmt.Errorf("the text of the run cost has no heading %q", settingsFrom)
		}
		if name == "settings" {
			return strings.TrimSpace(after), nil
		}
		return strings.TrimSpace(before), nil
	}
}

// clonesCPU is the row of what a clone that is written takes of Headwater's CPU
// time.
const clonesCPU = "cost/clone written/Headwater, CPU"

// requestedCPU is that of the chart, in milliseconds of CPU time a second.
const requestedCPU = 50

func resources(f File) (string, error) {
	_, memory, err := f.row("memory", "memory/resident/clones=10000/unrelated=50000")
	if err != nil {
		return "", err
	}
	_, each, err := f.row("cost", clonesCPU)
	if err != nil {
		return "", err
	}
	return strings.Join([]string{
		fmt.Sprintf("With %s clones and %s other Secrets, Headwater uses %s of memory.", memory.size("clones"), memory.size("unrelated"), median(memory.Unit, memory.Value)),
		fmt.Sprintf("Writing a clone takes %s of CPU time, so the requested 50m are enough for about", median(each.Unit, each.Value)),
		fmt.Sprintf("%.0f clones a second on a busy node. Between changes, Headwater uses almost no CPU.", 5*math.Round(requestedCPU/each.Value.Median/5)),
	}, "\n"), nil
}
