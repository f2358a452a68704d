package pins_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/configs"
	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
)

// Dashboards and alerts select by name, label and value. The names are those that
// the service registers. The values are those that it has from the start, and
// those that the code may set: of one of the product's own types each constant.
// A * stands for what depends on the cluster or the configuration.
func TestNamesAndLabelsOfMetrics(t *testing.T) {
	registry := registryOf(t)
	labels := registered(t, registry)
	require.Greater(t, len(labels), 20)
	values := setBy(sourceOf(t), labels)
	gathered(t, registry, values)
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		_, _ = fmt.Fprintf(&out, "%s{%s}\n", name, strings.Join(slices.Sorted(slices.Values(labels[name])), ","))
		for _, label := range slices.Sorted(slices.Values(labels[name])) {
			_, _ = fmt.Fprintf(&out, "  %s: %s\n", label, strings.Join(values.of(name, label), ", "))
		}
	}
	requireGolden(t, "metrics.txt", out.String())
}

// registryOf is the registry of the whole service, which is not started.
func registryOf(t *testing.T) *prometheus.Registry {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: c,
		contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]}`), 0o600))
	clients, err := kube.Connect(kube.Kubeconfig{File: kubeconfig}, "test")
	require.NoError(t, err)
	loaded, err := config.Parse("headwater.yaml", configs.Sample())
	require.NoError(t, err)
	var registry *prometheus.Registry
	require.NoError(t, fx.New(app.Options(settings(), &app.Started{Config: loaded}, clients, zap.NewNop()), fx.Populate(&registry)).Err())
	return registry
}

func settings() app.Settings {
	return app.Settings{
		Namespace: "headwater-system", WebhookAddress: "127.0.0.1:0", WebhookCASettle: time.Minute,
		MetricsAddress: "127.0.0.1:0", LeaderElect: true, LeaseDuration: 15 * time.Second, Workers: 1,
	}
}

var description = regexp.MustCompile(`fqName: "((?:headwater|workqueue|rest_client)_\w+)",.* constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}`)

// registered are the labels of each metric: first those that never change, then
// the others in the order in which the code sets them.
func registered(t *testing.T, registry *prometheus.Registry) map[string][]string {
	t.Helper()
	out := make(chan *prometheus.Desc)
	go func() { defer close(out); registry.Describe(out) }()
	labels := map[string][]string{}
	for desc := range out {
		found := description.FindStringSubmatch(desc.String())
		if found == nil {
			require.NotRegexp(t, "headwater_|workqueue_|rest_client_", desc.String())
			continue
		}
		constant := regexp.MustCompile(`="[^"]*"`).ReplaceAllString(found[2], "")
		labels[found[1]] = strings.FieldsFunc(constant+","+found[3], func(r rune) bool { return r == ',' })
	}
	return labels
}

// labelValues are the values of each label of each metric.
type labelValues map[[2]string]map[string]bool

func (v labelValues) of(metric, label string) []string {
	all := slices.Sorted(maps.Keys(v[[2]string{metric, label}]))
	if len(all) == 0 || label == "namespace" || label == "name" && !strings.HasPrefix(metric, "workqueue_") {
		return []string{anything}
	}
	if slices.Contains(all, anything) {
		all = slices.DeleteFunc(all, func(value string) bool { return value == "" })
	}
	for i, value := range all {
		all[i] = cmp.Or(value, `""`)
	}
	return all
}

func (v labelValues) add(metric, label string, values ...string) {
	key := [2]string{metric, label}
	if v[key] == nil {
		v[key] = map[string]bool{}
	}
	for _, value := range values {
		v[key][value] = true
	}
}

// gathered adds what the metrics say from the start, where the source does not
// tell, and the configuration does not decide.
func gathered(t *testing.T, registry *prometheus.Registry, values labelValues) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, pair := range metric.GetLabel() {
				if name := pair.GetName(); name == "verb" || name == "kind" {
					values.add(family.GetName(), name, pair.GetValue())
				}
			}
		}
	}
}

// setBy reads from the source which values the labels of the metrics are set to.
func setBy(s *source, labels map[string][]string) labelValues {
	values := labelValues{}
	set := func(of ast.Expr, arguments []ast.Expr) {
		for _, metric := range s.metrics(of, map[types.Object]bool{nil: true}) {
			for i, argument := range arguments {
				if i < len(labels[metric]) {
					values.add(metric, labels[metric][i], s.texts(argument)...)
				}
			}
		}
	}
	for _, name := range s.queues() {
		for metric, of := range labels {
			if slices.Contains(of, "queue") {
				values.add(metric, "queue", name)
			} else if strings.HasPrefix(metric, "workqueue_") {
				values.add(metric, "name", name)
			}
		}
	}
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			const before = 3 // the description, the type and the value
			switch {
			case selector.Sel.Name == "WithLabelValues":
				set(selector.X, call.Args)
			case strings.HasSuffix(selector.Sel.Name, "NewConstMetric") && len(call.Args) > before:
				set(call.Args[0], call.Args[before:])
			}
			return true
		})
	}
	return values
}

// metrics are the names of the metrics that expr may be: those in the calls that
// it comes from.
func (s *source) metrics(expr ast.Expr, seen map[types.Object]bool) []string {
	var names []string
	object := s.object(expr)
	if seen[object] {
		return nil
	}
	seen[object] = true
	for _, origin := range s.originsOf(object) {
		names = append(names, s.metrics(origin.expr, seen)...)
		ast.Inspect(origin.expr, func(node ast.Node) bool {
			if pair, keyed := node.(*ast.KeyValueExpr); keyed {
				names = append(names, s.metricNames(pair.Value)...)
				return false
			}
			if inner, ok := node.(ast.Expr); ok {
				names = append(names, s.metricNames(inner)...)
			}
			return true
		})
	}
	return names
}

// metricNames are the names of metrics among the texts that expr may be.
func (s *source) metricNames(expr ast.Expr) []string {
	if of := s.info.TypeOf(expr); of == nil || of.String() != "string" && of.String() != "untyped string" {
		return nil
	}
	return slices.DeleteFunc(s.texts(expr), func(text string) bool { return !strings.HasPrefix(text, "headwater_") })
}

// queues are the names of the product's queues, which client-go hands to their
// metrics.
func (s *source) queues() []string {
	var names []string
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			literal, ok := node.(*ast.CompositeLit)
			if !ok || !hasFields(s.info.TypeOf(literal), "Name", "Workers", "Registry") {
				return true
			}
			for _, element := range literal.Elts {
				if pair, keyed := element.(*ast.KeyValueExpr); keyed && pair.Key.(*ast.Ident).Name == "Name" {
					names = append(names, s.texts(pair.Value)...)
				}
			}
			return true
		})
	}
	return names
}
