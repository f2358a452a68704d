// Package harness runs the built Headwater binary as a process of its own
// against a test control plane, and holds what scenario and end-to-end tests
// share: objects to work on and ways to wait for a state.
package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

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
}

// Start starts Headwater; see Ready.
func Start(o Options) (*Headwater, error) {
	metrics, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	if o.Webhook == "" {
		if o.Webhook, err = FreeAddress(); err != nil {
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
		return measures.Idle()
	})
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
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
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
