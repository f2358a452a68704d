// Package lab runs the built Headwater binary as a process of its own
// against a test control plane, and holds what scenario and end-to-end tests
// share: objects to work on and ways to wait for a state.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/headwater-k8s/headwater/test/process"
)

// Namespace is Headwater's own; ServiceAccount its identity there.
const (
	Namespace      = "headwater-system"
	ServiceAccount = "system:serviceaccount:headwater-system:headwater"
)

const stopGrace = 30 * time.Second

// Options say how to run Headwater.
type Options struct {
	Binary, Config, Kubeconfig string
	// Dir holds the log.
	Dir string
	// Name tells several processes of one Dir apart.
	Name string
	// Webhook is the address that the webhook listens on, by default a free
	// one. A restart that is to change nothing needs the same address again.
	Webhook string
	// Service has the API server reach the webhook by the Service, and not by
	// the webhook's own address; see NewService.
	Service bool
	// LogLevel is debug by default.
	LogLevel string
	// Args are added to the command line, Env to an otherwise empty environment.
	Args, Env []string
}

// ChartEnv is what the chart sets for Go's garbage collector, except GOMEMLIMIT, which
// depends on the memory limit of the container. Benchmarks run with it, so that they
// measure what users run.
func ChartEnv() []string { return []string{"GOGC=40"} }

// Headwater is one running process.
type Headwater struct {
	*process.Process

	LogFile    string
	MetricsURL string
	WebhookURL string
	// reloads is whether this process has begun to reload consumers.
	reloads atomic.Bool
}

// Start starts Headwater; see Ready.
func Start(o Options) (*Headwater, error) {
	var err error
	if o.Webhook == "" {
		if o.Webhook, err = FreeAddress(); err != nil {
			return nil, err
		}
	}
	metrics := o.Webhook // which may be free as yet, so that it could be found again
	for metrics == o.Webhook {
		if metrics, err = FreeAddress(); err != nil {
			return nil, err
		}
	}
	if o.LogLevel == "" {
		o.LogLevel = "debug"
	}
	if o.Name == "" {
		o.Name = "headwater"
	}
	h := &Headwater{
		LogFile:    filepath.Join(o.Dir, o.Name+".log"),
		MetricsURL: "http://" + metrics,
		WebhookURL: "https://" + o.Webhook,
	}
	args := []string{
		"run", "--config", o.Config, "--kubeconfig", o.Kubeconfig, "--log-level", o.LogLevel,
		"--metrics-address", metrics, "--webhook-address", o.Webhook, "--webhook-drain", "0s",
	}
	if !o.Service {
		args = append(args, "--webhook-url", h.WebhookURL)
	}
	args = append(args, o.Args...)
	h.Process, err = process.Start(process.Spec{Name: o.Name, Binary: o.Binary, Args: args, Env: o.Env, LogFile: h.LogFile})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Stop asks Headwater to end, as Kubernetes would, and waits.
func (h *Headwater) Stop() { h.Process.Stop(stopGrace) }

// Ready waits until /readyz says so. It fails at once when the process ends.
func (h *Headwater) Ready(ctx context.Context) error {
	var last string
	err := Eventually(ctx, func(ctx context.Context) error {
		if err := h.Failure(); err != nil {
			return Permanent(err)
		}
		body, status, err := get(ctx, h.MetricsURL+"/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("not ready: %s", strings.TrimSpace(body))
		}
		last = body
		return err
	})
	if err != nil {
		return fmt.Errorf("headwater: %w; its log is %s (last said %q)", err, h.LogFile, last)
	}
	return nil
}

// Metric returns the sum of a metric over all label sets that include labels;
// for a histogram, the number of observations. A metric that does not exist is
// zero.
func (h *Headwater) Metric(ctx context.Context, name string, labels map[string]string) (float64, error) {
	body, err := h.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	return SumOf(body, name, labels)
}

// SumOf is Headwater.Metric of what anybody's /metrics says.
func SumOf(body, name string, labels map[string]string) (float64, error) {
	measures, err := parse(body)
	if err != nil {
		return 0, err
	}
	return measures.Sum(name, labels), nil
}

// Metrics returns everything that /metrics says.
func (h *Headwater) Metrics(ctx context.Context) (string, error) {
	body, status, err := get(ctx, h.MetricsURL+"/metrics")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("metrics: status %d", status)
	}
	return body, err
}

// Idle waits until Headwater leads, has read everything, and has worked off
// every key of its queues.
func (h *Headwater) Idle(ctx context.Context) error {
	return Eventually(ctx, func(ctx context.Context) error {
		measures, err := h.Measures(ctx)
		if err != nil {
			return err
		}
		return h.idle(measures)
	})
}

// idle is Measures.Idle where reloads have begun as well, if there are consumers to reload: they
// begin apart from clones.
func (h *Headwater) idle(measures Measures) error {
	if err := measures.Idle(); err != nil || h.reloads.Load() || measures.By("headwater_cache_resource_version", "cache")["workloads: deployments.apps"] == 0 {
		return err
	}
	log, err := h.Log()
	h.reloads.Store(strings.Contains(log, `"msg":"reload started`))
	return errors.Join(err, ErrorIf(!h.reloads.Load(), "reloads have not begun"))
}

// Log returns everything the process has logged.
func (h *Headwater) Log() (string, error) {
	content, err := os.ReadFile(h.LogFile)
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	return string(content), nil
}

func get(ctx context.Context, url string) (body string, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return string(content), response.StatusCode, err
}

// WebhookAddress is what the webhook listens on.
func (h *Headwater) WebhookAddress() string { return strings.TrimPrefix(h.WebhookURL, "https://") }

// FreeAddress finds a port that is free now; another process may take it
// before it is used.
func FreeAddress() (string, error) { return freeAddress("127.0.0.1") }

func freeAddress(host string) (string, error) {
	listener, err := process.Listen(host)
	if err != nil {
		return "", err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

// Measures are all metrics of one scrape.
type Measures map[string]*dto.MetricFamily

// Measures are all that /metrics says now.
func (h *Headwater) Measures(ctx context.Context) (Measures, error) {
	body, err := h.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	return parse(body)
}

func parse(body string) (Measures, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return families, nil
}

// Sum is that of a metric over all label sets that include labels; see
// Headwater.Metric.
func (m Measures) Sum(name string, labels map[string]string) (sum float64) {
metrics:
	for _, metric := range m[name].GetMetric() {
		for label, value := range labels {
			if labelOf(metric, label) != value {
				continue metrics
			}
		}
		sum += valueOf(metric)
	}
	return sum
}

// By returns the values of a metric by that label.
func (m Measures) By(name, label string) map[string]float64 {
	values := map[string]float64{}
	for _, metric := range m[name].GetMetric() {
		values[labelOf(metric, label)] = valueOf(metric)
	}
	return values
}

func labelOf(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

func valueOf(metric *dto.Metric) float64 {
	return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
}

// ErrNotWorking says that Headwater does not lead, or has not read everything.
var ErrNotWorking = errors.New("not working")

// Idle is nil when Headwater leads, has read everything, and has worked off every
// key of its queues.
func (m Measures) Idle() error {
	if m.Sum("headwater_sync_working", nil) != 1 {
		return ErrNotWorking
	}
	worked := m.By("headwater_queue_work_seconds", "queue")
	for queue, added := range m.By("headwater_queue_adds_total", "queue") {
		if added != worked[queue] {
			return fmt.Errorf("queue %s: %v of %v keys done", queue, worked[queue], added)
		}
	}
	for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} { // not every write is of a queue
		if m.Sum("headwater_api_requests_in_flight", map[string]string{"verb": verb}) > 0 {
			return fmt.Errorf("a request to %s is not answered yet", verb)
		}
	}
	return nil
}
