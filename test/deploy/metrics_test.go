package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

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
	ofTarget := []string{"job", "instance"}
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
		ID      int
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, LegendFormat string }
	}
	Templating  struct{ List []struct{ Name string } }
	Annotations struct{ List []struct{ Name, Expr string } }
}

func TestTheDashboardReadsWhatIsMeasured(t *testing.T) {
	content, err := os.ReadFile(deployDir + "/dashboards/headwater.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(content, &d))
	there := measured(t)
	// Grafana puts these in before it asks.
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", "headwater", "$rule", ".*")
	ids, shown := map[int]bool{}, map[string]bool{}
	for _, panel := range d.Panels {
		require.False(t, ids[panel.ID], "two panels of id %d", panel.ID)
		ids[panel.ID] = true
		require.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
		require.Equal(t, panel.Type == "row", len(panel.Targets) == 0, panel.Title)
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
}
