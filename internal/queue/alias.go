package queue

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// aliasLabel is the label that client-go's queues have where ours have queue.
const aliasLabel = "name"

// alias is a metric of a queue under the name that Kubernetes components and
// controller-runtime use, for dashboards and alerts that expect it. It costs
// nothing until a scrape, which reads the values of the metric itself.
type alias struct {
	of   prometheus.Collector
	desc *prometheus.Desc
}

func newAlias(of prometheus.Collector, name, help string) alias {
	return alias{of, prometheus.NewDesc(name, help, []string{aliasLabel}, nil)}
}

// Describe implements prometheus.Collector.
func (a alias) Describe(out chan<- *prometheus.Desc) { out <- a.desc }

// Collect implements prometheus.Collector.
func (a alias) Collect(out chan<- prometheus.Metric) {
	metrics := make(chan prometheus.Metric)
	go func() {
		defer close(metrics)
		a.of.Collect(metrics)
	}()
	for metric := range metrics {
		out <- renamed{metric, a.desc}
	}
}

// renamed is a metric with the description of its alias.
type renamed struct {
	prometheus.Metric

	desc *prometheus.Desc
}

// Desc implements prometheus.Metric.
func (r renamed) Desc() *prometheus.Desc { return r.desc }

// Write implements prometheus.Metric. It replaces the labels, because the metric
// shares them with every reader.
func (r renamed) Write(out *dto.Metric) error {
	if err := r.Metric.Write(out); err != nil {
		return err
	}
	labels := make([]*dto.LabelPair, 0, len(out.GetLabel()))
	for _, pair := range out.GetLabel() {
		labels = append(labels, &dto.LabelPair{Name: new(aliasLabel), Value: pair.Value})
	}
	out.Label = labels
	return nil
}
