package informers

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

var cacheVersion = prometheus.NewDesc("headwater_cache_resource_version",
	"The latest resourceVersion that each cache has seen. One that stays while such objects change has lost its watch.",
	[]string{"cache"}, nil)

// versioned is a runner that knows what it has seen.
type versioned interface {
	// versions calls report for each cache that it is made of.
	versions(report func(cache, resourceVersion string))
}

// Describe implements prometheus.Collector.
func (c *Caches) Describe(descs chan<- *prometheus.Desc) { descs <- cacheVersion }

// Collect implements prometheus.Collector.
func (c *Caches) Collect(metrics chan<- prometheus.Metric) {
	latest := map[string]float64{} // one value for each name: two would fail the scrape
	report := func(cache, resourceVersion string) {
		if version, err := strconv.ParseFloat(resourceVersion, 64); err == nil {
			latest[cache] = max(latest[cache], version)
		}
	}
	c.mu.Lock()
	for _, m := range c.members {
		if view, ok := m.runner.(versioned); ok {
			view.versions(report)
		}
	}
	c.mu.Unlock()
	c.Sources.versions(report)
	for cache, version := range latest {
		metrics <- prometheus.MustNewConstMetric(cacheVersion, prometheus.GaugeValue, version, cache)
	}
}

func (v *View[T]) versions(report func(cache, resourceVersion string)) {
	report(v.name, v.informer.GetStore().LastStoreSyncResourceVersion())
}

func (o *Optional[T]) versions(report func(cache, resourceVersion string)) {
	for _, view := range o.all() {
		view.versions(report)
	}
}

func (s *Sources) versions(report func(cache, resourceVersion string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, view := range s.views {
		view.versions(report)
	}
}
