package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

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
	return nil
}
