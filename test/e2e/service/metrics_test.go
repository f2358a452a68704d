package service

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

const metricsHead = "| metric | type | labels | meaning |\n|---|---|---|---|\n"

// requireKnownMetrics holds what h measures against deploy/METRICS.md, in both
// ways; with UPDATE=1 it writes that file.
func requireKnownMetrics(e *env, h *harness.Headwater) {
	e.Helper()
	file := filepath.Join(e2e.Root(e.T), "deploy", "METRICS.md")
	content, err := os.ReadFile(file)
	require.NoError(e, err)
	before, after, found := strings.Cut(string(content), metricsHead)
	require.True(e, found, "%s has lost its table", file)
	if os.Getenv("UPDATE") != "" {
		measured, err := metricLines(e.Context(), h)
		require.NoError(e, err)
		require.NoError(e, os.WriteFile(file, []byte(before+metricsHead+strings.Join(measured, "\n")+"\n"), 0o644))
		return
	}
	documented := strings.Split(strings.TrimSpace(after), "\n")
	e.Eventually(func(ctx context.Context) error {
		measured, err := metricLines(ctx, h)
		if err != nil {
			return err
		}
		for _, line := range documented {
			if !slices.Contains(measured, line) {
				return fmt.Errorf("in deploy/METRICS.md, but not measured: %s", line)
			}
		}
		for _, line := range measured {
			if !slices.Contains(documented, line) {
				return fmt.Errorf("measured, but not in deploy/METRICS.md (UPDATE=1 writes it anew): %s", line)
			}
		}
		return nil
	})
}

func metricLines(ctx context.Context, h *harness.Headwater) ([]string, error) {
	body, err := h.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if strings.HasPrefix(name, "headwater_") {
			lines = append(lines, metricLine(families[name]))
		}
	}
	return lines, nil
}

func metricLine(family *dto.MetricFamily) string {
	labels := map[string]bool{}
	for _, metric := range family.GetMetric() {
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = true
		}
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |", family.GetName(), strings.ToLower(family.GetType().String()),
		strings.Join(slices.Sorted(maps.Keys(labels)), ", "), family.GetHelp())
}
