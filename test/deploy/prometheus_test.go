package deploy

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

// scrapeInterval is that of the series of a test, which begin at 1970.
const scrapeInterval = time.Minute

// database holds series, as a Prometheus would that scraped them.
type database []storage.Series

// newDatabase reads series as promtool's unit tests write them, such as
// `up{job="headwater"} 1+0x60`.
func newDatabase(t *testing.T, series ...string) database {
	t.Helper()
	var db database
	for _, text := range series {
		name, values, err := parser.ParseSeriesDesc(text)
		require.NoError(t, err, text)
		var samples []chunks.Sample
		for i, value := range values {
			if !value.Omitted {
				samples = append(samples, sample{at: int64(i) * scrapeInterval.Milliseconds(), value: value.Value})
			}
		}
		db = append(db, storage.NewListSeries(name, samples))
	}
	return db
}

func (db database) Querier(_, _ int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		matches := func(series storage.Series) bool {
			return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Labels().Get(m.Name)) })
		}
		var found []storage.Series
		for _, series := range db {
			if matches(series) {
				found = append(found, series)
			}
		}
		slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
		return &seriesSet{found: found}
	}}, nil
}

type seriesSet struct {
	found []storage.Series
	at    storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.found) == 0 {
		return false
	}
	s.at, s.found = s.found[0], s.found[1:]
	return true
}

func (s *seriesSet) At() storage.Series { return s.at }

func (s *seriesSet) Err() error { return nil }

func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// value returns the one value of an expression at the moment at.
func (db database) value(t *testing.T, expression string, at time.Duration) float64 {
	t.Helper()
	query, err := newEngine(t).NewInstantQuery(t.Context(), db, nil, expression, time.Unix(0, 0).Add(at))
	require.NoError(t, err, expression)
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	require.NoError(t, err, expression)
	require.Len(t, vector, 1, expression)
	return vector[0].F
}

func newEngine(t *testing.T) *promql.Engine {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, EnableAtModifier: true})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine
}

// firing returns the labels of what fires of an alert at the moment at: what
// its expression gave at every evaluation for as long as the alert waits.
func (db database) firing(t *testing.T, rule rulefmt.Rule, at time.Duration) []labels.Labels {
	t.Helper()
	end := time.Unix(0, 0).Add(at)
	start := end.Add(-time.Duration(rule.For))
	query, err := newEngine(t).NewRangeQuery(context.WithoutCancel(t.Context()), db, nil, rule.Expr, start, end, scrapeInterval)
	require.NoError(t, err, rule.Alert)
	defer query.Close()
	matrix, err := query.Exec(t.Context()).Matrix()
	require.NoError(t, err, rule.Alert)
	var firing []labels.Labels
	for _, series := range matrix {
		if len(series.Floats) == int(end.Sub(start)/scrapeInterval)+1 {
			firing = append(firing, series.Metric)
		}
	}
	return firing
}

// sample is a chunks.Sample of one number.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64 { return s.at }

func (s sample) F() float64 { return s.value }

func (s sample) H() *histogram.Histogram { return nil }

func (s sample) FH() *histogram.FloatHistogram { return nil }

func (s sample) Type() chunkenc.ValueType { return chunkenc.ValFloat }

func (s sample) Copy() chunks.Sample { return s }

func (s sample) String() string { return fmt.Sprint(s.value, "@", model.Time(s.at)) }
