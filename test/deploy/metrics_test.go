package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// measured reads deploy/METRICS.md, which an end-to-end test holds against a
// scrape of the running service: the labels of each series.
func measured(t *testing.T) map[string][]string {
	t.Helper()
	content, err := os.ReadFile(deployDir + "/METRICS.md")
	require.NoError(t, err)
	// What Prometheus, and every Go program, adds.
	all := map[string][]string{
		"up": nil, "process_resident_memory_bytes": nil, "process_cpu_seconds_total": nil, "go_memstats_heap_inuse_bytes": nil,
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([\\w, ]*) \\|").FindAllStringSubmatch(string(content), -1) {
		labels := strings.Split(row[3], ", ")
		if row[2] != "histogram" {
			all[row[1]] = labels
			continue
		}
		all[row[1]+"_bucket"] = append(labels, "le")
		all[row[1]+"_sum"], all[row[1]+"_count"] = labels, labels
	}
	require.Greater(t, len(all), 20)
	return all
}

// requireMeasured holds what an expression reads, and what it groups by,
// against what there is.
func requireMeasured(t *testing.T, there map[string][]string, where, expression string) {
	t.Helper()
	parsed, err := parser.ParseExpr(expression)
	require.NoError(t, err, "%s: %s", where, expression)
	ofTarget := []string{"cluster", "job", "instance"}
	known := slices.Clone(ofTarget)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		require.Contains(t, there, selector.Name, where)
		known = append(known, there[selector.Name]...)
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != "__name__" {
				require.Contains(t, append(there[selector.Name], ofTarget...), matcher.Name, "%s: label of %s", where, selector.Name)
			}
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if aggregate, ok := node.(*parser.AggregateExpr); ok {
			require.Subset(t, known, aggregate.Grouping, where)
		}
		return nil
	})
}

func TestAlertsReadWhatIsMeasured(t *testing.T) {
	there := measured(t)
	for _, alert := range alerts(t) {
		requireMeasured(t, there, alert.Alert, alert.Expr)
	}
}

// dashboard is what we use of Grafana's model.
type dashboard struct {
	Panels []struct {
		ID          int
		Title       string
		Description string
		Type        string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct{ Name, AllValue string }
	}
	Annotations struct{ List []struct{ Name, Expr string } }
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	content, err := os.ReadFile(deployDir + "/dashboards/headwater.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(content, &d))
	return d
}

// variables replaces Grafana's variables, as Grafana does before it sends a query.
func variables(clusters string) *strings.Replacer {
	return strings.NewReplacer("$__rate_interval", "5m", "$job", "headwater", "$rule", ".*", "$cluster", clusters)
}

func TestTheDashboardReadsWhatIsMeasured(t *testing.T) {
	d, there, variables := readDashboard(t), measured(t), variables(".*")
	ids, shown := map[int]bool{}, map[string]bool{}
	for _, panel := range d.Panels {
		require.False(t, ids[panel.ID], "two panels of id %d", panel.ID)
		ids[panel.ID] = true
		require.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
		require.Equal(t, panel.Type == "row", len(panel.Targets) == 0, panel.Title)
		if panel.Type != "row" {
			require.Regexp(t, `^[A-Z0-9].{20,}\.$`, panel.Description, "description of %s", panel.Title)
		}
		for _, target := range panel.Targets {
			expression := variables.Replace(target.Expr)
			require.NotContains(t, expression, "$", panel.Title)
			requireMeasured(t, there, panel.Title, expression)
			for name := range there {
				if strings.Contains(expression, name) {
					shown[strings.TrimSuffix(name, "_bucket")] = true
				}
			}
		}
	}
	for _, annotation := range d.Annotations.List {
		requireMeasured(t, there, annotation.Name, variables.Replace(annotation.Expr))
	}
	require.Greater(t, len(shown), 20, "the dashboard shows little of what there is")
	for _, name := range []string{"headwater_delivery_sources", "headwater_delivery_waits", "headwater_delivery_stage_seconds", "headwater_reload_rollouts_stuck"} {
		require.True(t, shown[name], name)
	}
}

// A Prometheus of one cluster usually has no label cluster; Thanos or Mimir with
// many has it.
func TestTheDashboardSelectsClustersWithAndWithoutThatLabel(t *testing.T) {
	const up, lead, clones = `up{job="headwater", instance="%s"} 1x90`, `headwater_leader{job="headwater", instance="%s"} %s`,
		`headwater_sync_clones{job="headwater", instance="%s", rule="r", state="current", reason="InSync"} %s`
	one := []string{ // the second replica does not lead
		fmt.Sprintf(up, "a"), fmt.Sprintf(lead, "a", "1x90"), fmt.Sprintf(clones, "a", "5x90"),
		fmt.Sprintf(up, "b"), fmt.Sprintf(lead, "b", "0x90"), fmt.Sprintf(clones, "b", "7x90"),
	}
	labelled := func(cluster string, series []string) (all []string) {
		for _, text := range series {
			all = append(all, strings.Replace(text, "{", `{cluster="`+cluster+`", `, 1))
		}
		return all
	}
	// Instances of the two clusters have the same names, and other leaders.
	other := []string{fmt.Sprintf(up, "b"), fmt.Sprintf(lead, "b", "1x90"), fmt.Sprintf(clones, "b", "3x90")}
	two := slices.Concat(labelled("east", one), labelled("west", other))
	d := readDashboard(t)
	require.True(t, slices.ContainsFunc(d.Templating.List, func(v struct{ Name, AllValue string }) bool {
		return v.Name == "cluster" && v.AllValue == ".*"
	}))
	for sentence, test := range map[string]struct {
		series           []string
		clusters         string
		replicas, leader float64
		clones           float64
	}{
		"no label, all":     {one, ".*", 2, 1, 5},
		"two clusters, all": {two, ".*", 3, 2, 8},
		"one of two":        {two, "west", 1, 1, 3},
		"two of two":        {two, "(east|west)", 3, 2, 8},
	} {
		t.Run(sentence, func(t *testing.T) {
			db := newDatabase(t, test.series...)
			want := map[string]float64{"Replicas": test.replicas, "Leader": test.leader, "Clones current": test.clones}
			for _, panel := range d.Panels {
				if value, asked := want[panel.Title]; asked {
					require.InDelta(t, value, db.value(t, variables(test.clusters).Replace(panel.Targets[0].Expr), time.Hour), 0, panel.Title)
					delete(want, panel.Title)
				}
			}
			require.Empty(t, want, "panels that the dashboard lacks")
		})
	}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			require.Contains(t, target.Expr, `cluster=~"$cluster"`, panel.Title)
			require.NotContains(t, target.Expr, "on (job", "%s: replicas of two clusters may have the same name", panel.Title)
		}
	}
}
