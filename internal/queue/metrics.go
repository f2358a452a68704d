package queue

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/util/workqueue"
)

// metrics is a workqueue.MetricsProvider. All queues of the process share its
// collectors, which have the label queue.
type metrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, duration          *prometheus.HistogramVec
}

var _ workqueue.MetricsProvider = metrics{}

func newMetrics(registry prometheus.Registerer) metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"queue"}))
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"queue"}))
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"queue"}))
	}
	m := metrics{
		depth:      gauge("headwater_queue_depth", "Keys that wait to be worked on."),
		unfinished: gauge("headwater_queue_unfinished_work_seconds", "Seconds of work in progress, summed over the workers."),
		longest:    gauge("headwater_queue_longest_running_seconds", "Age in seconds of the oldest work in progress."),
		adds:       counter("headwater_queue_adds_total", "Keys added."),
		retries:    counter("headwater_queue_retries_total", "Keys added again after an error."),
		latency:    histogram("headwater_queue_wait_seconds", "Seconds a key waited before work on it began."),
		duration:   histogram("headwater_queue_work_seconds", "Seconds that work on one key took."),
	}
	m.registerAliases(registry)
	return m
}

// registerAliases also registers the metrics under the names of client-go's work
// queues.
func (m metrics) registerAliases(registry prometheus.Registerer) {
	for _, also := range []alias{
		newAlias(m.depth, "workqueue_depth", "The same as headwater_queue_depth."),
		newAlias(m.adds, "workqueue_adds_total", "The same as headwater_queue_adds_total."),
		newAlias(m.latency, "workqueue_queue_duration_seconds", "The same as headwater_queue_wait_seconds."),
		newAlias(m.duration, "workqueue_work_duration_seconds", "The same as headwater_queue_work_seconds."),
		newAlias(m.unfinished, "workqueue_unfinished_work_seconds", "The same as headwater_queue_unfinished_work_seconds."),
		newAlias(m.longest, "workqueue_longest_running_processor_seconds", "The same as headwater_queue_longest_running_seconds."),
		newAlias(m.retries, "workqueue_retries_total", "The same as headwater_queue_retries_total."),
	} {
		register(registry, also)
	}
}

func register[C prometheus.Collector](registry prometheus.Registerer, collector C) C {
	var taken prometheus.AlreadyRegisteredError
	if err := registry.Register(collector); errors.As(err, &taken) {
		if existing, ok := taken.ExistingCollector.(C); ok {
			return existing
		}
	} else if err != nil {
		panic(err) // a programming error: two metrics of one name
	}
	return collector
}

func (m metrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return m.depth.WithLabelValues(name)
}

func (m metrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

func (m metrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.latency.WithLabelValues(name)
}

func (m metrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return m.duration.WithLabelValues(name)
}

func (m metrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

func (m metrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.longest.WithLabelValues(name)
}

func (m metrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}

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
