package figures

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// OfPeers begins the names of the runs of bench-peers. The controller and the
// key of the only row follow.
const OfPeers = "peers/"

// Itself is the name that bench-peers gives Headwater.
const Itself = "headwater"

// ByPeer makes a run of each row that was measured of a controller, so that rows
// of other sizes stay.
func ByPeer(controller string, like Run, rows []Row) map[string]Run {
	runs := map[string]Run{}
	for _, row := range rows {
		run := like
		run.Rows = []Row{row}
		runs[OfPeers+controller+"/"+row.Key] = run
	}
	return runs
}

// peerLines are the rows of bench-peers in the order of the table: how a key
// begins, and its name with the size in the place of %s.
var peerLines = []struct{ key, size, what string }{
	{"fan-out/", "clones", "source edited, until the last of %s clones is written"},
	{"new-namespace", "", "namespace created, until it has its clone"},
	{"heal/edited", "", "clone edited, until it is restored"},
	{"heal/deleted", "", "clone deleted, until it is restored"},
	{"restarts/", "templates", "Secret edited, until the last of %s Deployments is restarted"},
	{"refresh/", "pods", "Secret edited, until the last of %s running pods is refreshed"},
}

// measuredPeer is a run of bench-peers.
type measuredPeer struct {
	controller string
	size       int
	run        Run
	row        Row
}

func peers(f File) (string, error) {
	var rows [][]string
	for _, line := range peerLines {
		for _, peer := range f.peersOf(line.key, line.size) {
			what := line.what
			if line.size != "" {
				what = fmt.Sprintf(what, peer.row.size(line.size))
			}
			rows = append(rows, append([]string{what}, peer.cells()...))
		}
	}
	if len(rows) == 0 {
		return "", fmt.Errorf("%s has no runs %s", Name, OfPeers)
	}
	return table([]string{"median of", "controller", "version", "controller's time", "bare client", "ratio", "command", "measured on"}, rows), nil
}

// peersOf returns the runs of which the key of the row begins so: the smaller
// size first, then Headwater, then the others by name.
func (f File) peersOf(key, size string) []measuredPeer {
	var all []measuredPeer
	for name, run := range f.Runs {
		controller, _, _ := strings.Cut(strings.TrimPrefix(name, OfPeers), "/")
		if !strings.HasPrefix(name, OfPeers+controller+"/"+key) || len(run.Rows) != 1 {
			continue
		}
		number, _ := strconv.Atoi(strings.ReplaceAll(run.Rows[0].size(size), ",", "")) // 0 without a size
		all = append(all, measuredPeer{controller, number, run, run.Rows[0]})
	}
	slices.SortFunc(all, func(a, b measuredPeer) int {
		return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.controller, b.controller))
	})
	return all
}

func (p measuredPeer) rank() int {
	if p.controller == Itself {
		return 0
	}
	return 1
}

func (p measuredPeer) cells() []string {
	version, value, floor := p.run.Version, p.row.Outcome, "-"
	if version == "" {
		version = p.run.Commit
	}
	if value == "" {
		value = median(p.row.Unit, p.row.Value)
	}
	if p.row.Floor != nil {
		floor = median(p.row.Unit, *p.row.Floor)
	}
	return []string{p.controller, version, value, floor, p.row.factor(), "`" + p.run.Command + "`", p.run.day()}
}

// factor is the median ratio of rounds and their range, or the ratio of the
// medians of samples, which are no pairs.
func (r Row) factor() string {
	switch {
	case r.Outcome != "" || r.Floor == nil:
		return "-"
	case r.Ratio == nil:
		return short(r.Value.Median / r.Floor.Median)
	case r.Samples == 1:
		return short(r.Ratio.Median)
	default:
		return fmt.Sprintf("%s (%s to %s)", short(r.Ratio.Median), short(r.Ratio.Least), short(r.Ratio.Greatest))
	}
}

// short writes a ratio with no more digits than it deserves.
func short(ratio float64) string {
	if ratio >= 10 {
		return whole(ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}
