package service

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/configs"
	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/test/lab"
)

const metricsHead = "| metric | type | labels | meaning |\n|---|---|---|---|\n"

// requireKnownMetrics holds what Headwater registers, and what h measures of it,
// against deploy/METRICS.md, in both ways; with UPDATE=1 it writes that file.
func requireKnownMetrics(e *env, h *lab.Headwater) {
	e.Helper()
	file := filepath.Join(lab.Root(e.T), "deploy", "METRICS.md")
	content, err := os.ReadFile(file)
	require.NoError(e, err)
	before, after, found := strings.Cut(string(content), metricsHead)
	require.True(e, found, "%s has lost its table", file)
	registered := registeredMetrics(e)
	if os.Getenv("UPDATE") != "" {
		lines, err := metricLines(e.Context(), h, registered)
		require.NoError(e, err)
		require.NoError(e, os.WriteFile(file, []byte(before+metricsHead+strings.Join(lines, "\n")+"\n"), 0o644))
		return
	}
	documented := strings.Split(strings.TrimSpace(after), "\n")
	e.Eventually(func(ctx context.Context) error {
		lines, err := metricLines(ctx, h, registered)
		if err != nil {
			return err
		}
		for _, line := range documented {
			if !slices.Contains(lines, line) {
				return fmt.Errorf("in deploy/METRICS.md, but not in Headwater: %s", line)
			}
		}
		for _, line := range lines {
			if !slices.Contains(documented, line) {
				return fmt.Errorf("in Headwater, but not in deploy/METRICS.md (UPDATE=1 rewrites it): %s", line)
			}
		}
		return nil
	})
}

// metric is a line of the table.
type metric struct{ name, kind, labels, help string }

func (m metric) String() string {
	return fmt.Sprintf("| `%s` | %s | %s | %s |", m.name, m.kind, m.labels, m.help)
}

// registeredMetrics are those that Headwater describes before it has measured
// any: a metric with labels is seen in no scrape until it has happened. They do
// not tell their kind. Histograms are measured soon, counters are known by
// their name.
func registeredMetrics(e *env) []metric {
	e.Helper()
	o := e.Options("")
	loaded, err := config.Parse("headwater.yaml", configs.Sample())
	require.NoError(e, err)
	clients, err := kube.Connect(kube.Kubeconfig{File: o.Kubeconfig}, "test")
	require.NoError(e, err)
	var registry *prometheus.Registry
	settings := app.Settings{Namespace: lab.Namespace, WebhookURL: "https://127.0.0.1:1", WebhookAddress: o.Webhook, LeaderElect: true, LeaseDuration: leader.DefaultLeaseDuration, Workers: 1}
	require.NoError(e, fx.New(app.Options(settings, &app.Started{Config: loaded}, clients, zap.NewNop()), fx.Populate(&registry)).Err())
	out := make(chan *prometheus.Desc)
	go func() { defer close(out); registry.Describe(out) }()
	var all []metric
	for desc := range out {
		if one, ours := described(e, desc.String()); ours {
			all = append(all, one)
		}
	}
	require.Greater(e, len(all), 20)
	return all
}

var (
	named       = regexp.MustCompile(`^(headwater|workqueue|rest_client)_`)
	description = regexp.MustCompile(`fqName: "((?:headwater|workqueue|rest_client)_\w+)", help: (".*"), unit: ".*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}`)
	labelValue  = regexp.MustCompile(`="[^"]*"`)
)

// described reads what prometheus.Desc says of itself.
func described(e *env, desc string) (one metric, ours bool) {
	e.Helper()
	found := description.FindStringSubmatch(desc)
	if found == nil {
		require.NotContains(e, desc, "headwater_")
		return metric{}, false
	}
	help, err := strconv.Unquote(found[2])
	require.NoError(e, err, desc)
	labels := strings.FieldsFunc(labelValue.ReplaceAllString(found[3], "")+","+found[4], func(r rune) bool { return r == ',' })
	slices.Sort(labels)
	kind := "gauge"
	if strings.HasSuffix(found[1], "_total") {
		kind = "counter"
	}
	return metric{found[1], kind, strings.Join(labels, ", "), help}, true
}

// metricLines are the lines of what is registered, and of what is measured where
// that is.
func metricLines(ctx context.Context, h *lab.Headwater, registered []metric) ([]string, error) {
	body, err := h.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	switch problems, err := promlint.New(strings.NewReader(body)).Lint(); {
	case err != nil:
		return nil, err
	case len(problems) > 0:
		return nil, fmt.Errorf("not as Prometheus names metrics: %v", problems)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	all := map[string]metric{}
	for _, one := range registered {
		all[one.name] = one
	}
	for name, family := range families {
		if named.MatchString(name) {
			all[name] = measured(family)
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, all[name].String())
	}
	return lines, nil
}

func measured(family *dto.MetricFamily) metric {
	labels := map[string]bool{}
	for _, metric := range family.GetMetric() {
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = true
		}
	}
	return metric{
		family.GetName(), strings.ToLower(family.GetType().String()), strings.Join(slices.Sorted(maps.Keys(labels)), ", "), family.GetHelp(),
	}
}
