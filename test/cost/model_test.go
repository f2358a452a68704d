package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALineIsFitted(t *testing.T) {
	for what, one := range map[string]struct {
		points          []point
		base, slope, r2 float64
		stderr          float64
		unknown         bool
	}{
		"points on a line":              {points: []point{{0, 5}, {10, 25}, {20, 45}}, base: 5, slope: 2, r2: 1},
		"a point beside it":             {points: []point{{0, 0}, {1, 3}, {2, 3}, {3, 6}}, base: 0.3, slope: 1.8, r2: 0.9, stderr: math.Sqrt(1.8 / 2 / 5)},
		"what does not grow":            {points: []point{{0, 7}, {10, 7}, {20, 7}}, base: 7, slope: 0, r2: 1},
		"two points leave no remainder": {points: []point{{1, 1}, {2, 3}}, base: -1, slope: 2, r2: 1, unknown: true},
		"one point has no slope":        {points: []point{{4, 9}}, base: 9, r2: 1, unknown: true},
		"one x has no slope":            {points: []point{{4, 8}, {4, 10}}, base: 9, r2: 1, unknown: true},
	} {
		t.Run(what, func(t *testing.T) {
			l := fit(one.points)
			require.InDelta(t, one.base, l.base, 1e-9)
			require.InDelta(t, one.slope, l.slope, 1e-9)
			require.InDelta(t, one.r2, l.r2, 1e-9)
			if one.unknown {
				require.True(t, math.IsNaN(l.stderr))
			} else {
				require.InDelta(t, one.stderr, l.stderr, 1e-9)
			}
		})
	}
}

func TestTheSmallerSizesForetellTheGreatest(t *testing.T) {
	got, ok := tryOut([]point{{30, 99}, {10, 20}, {20, 40}})
	require.True(t, ok)
	require.InDelta(t, 60, got.foretold, 1e-9)
	require.InDelta(t, 60.0/99-1, got.off(), 1e-9)
	_, ok = tryOut([]point{{1, 1}, {2, 2}})
	require.False(t, ok, "two points leave none to draw a line by")
}

// proportional is a model in which everything is known: a clone costs so much
// of each, and each byte of its payload beyond the usual as much again.
func proportional() *model {
	m := newModel()
	lines := map[entry]line{
		{perClone, heap}: {base: 10 * mib, slope: 1000}, {perNamespace, heap}: {slope: 500}, {perByte, heap}: {slope: 2},
		{perClone, resident}: {base: 40 * mib, slope: 2000}, {perByte, resident}: {slope: 3},
		{perClone, apiHeap}: {base: 100 * mib, slope: 4000}, {perByte, apiHeap}: {slope: 2},
		{perClone, etcdSize}: {base: mib, slope: 2048}, {perByte, etcdSize}: {slope: 1},
		{perWrite, revision}: {slope: 2048}, {perByte, revision}: {slope: 1},
		{perWrite, wall}: {slope: 0.001}, {perByte, wall}: {slope: 1e-9},
		{perWrite, ownCPU}: {slope: 0.0001}, {perWrite, apiCPU}: {base: 3, slope: 0.0005}, {perByte, apiCPU}: {slope: -1e-9},
	}
	for e, l := range lines {
		for _, x := range []float64{0, 1000, 2000} {
			m.add(e.per, e.of, x, l.at(x))
		}
	}
	return m
}

func TestALargerClusterIsForetold(t *testing.T) {
	f := proportional().foretell(scenario{sources: 2, namespaces: 100, payload: usualPayload + 1000})
	require.InDelta(t, 10*mib+1000*200+500*100+2*1000*2, f.heap, 1, "a source is kept whole, a clone as digests")
	require.InDelta(t, 40*mib+2000*200+3*1000*2, f.resident, 1)
	require.InDelta(t, 100*mib+(4000+2*1000)*200, f.apiHeap, 1, "an API server keeps every clone whole")
	require.InDelta(t, 2*f.apiHeap, f.apiResident, 1)
	require.InDelta(t, mib+(2048+1000)*200, f.etcd, 1)
	require.InDelta(t, (2048+1000)*100, f.change, 1, "a change is of one source")
	require.InDelta(t, 0.1001, f.wall, 1e-9)
	require.InDelta(t, 0.01, f.ownCPU, 1e-9)
	require.InDelta(t, 0.05, f.apiCPU, 1e-9, "noise below zero costs nothing, and what a change costs by itself is no part of a clone")
}

func TestTheFirstLimitIsFound(t *testing.T) {
	m := proportional()
	for what, one := range map[string]struct {
		scenario scenario
		first    string
		share    float64 // at least
	}{
		"small payloads fill Headwater's container": {scenario{sources: 100, namespaces: 100, payload: usualPayload}, "container", 0.1},
		"large payloads fill etcd":                  {scenario{sources: 10, namespaces: 1000, payload: 1e6}, "etcd", 4},
	} {
		t.Run(what, func(t *testing.T) {
			all := m.strains(one.scenario, []limit{
				{"etcd", 2 * gib, func(f forecast) float64 { return f.etcd + f.change }},
				{"container", 128 * mib, func(f forecast) float64 { return f.resident }},
				{"of no size", gib, func(forecast) float64 { return mib }},
			})
			require.True(t, math.IsInf(all[2].clones, 1), "what does not grow is never full")
			least := first(all)
			require.Equal(t, one.first, least.limit.what)
			require.Greater(t, least.share, one.share)
			// At the number of clones that it tells, the limit is reached exactly.
			full := one.scenario
			full.namespaces = least.clones / full.sources
			require.InEpsilon(t, least.limit.amount, least.limit.use(m.foretell(full)), 1e-9)
		})
	}
}

func TestSettingsLeaveRoom(t *testing.T) {
	for what, one := range map[string]struct {
		forecast forecast
		want     settings
	}{
		"a small cluster keeps the defaults": {
			forecast{resident: 30 * mib, etcd: 100 * mib, apiResident: 300 * mib},
			settings{quota: 2 * gib, memory: 128 * mib, api: gib},
		},
		"a large one gets half as much again": {
			forecast{resident: 400 * mib, etcd: 2 * gib, change: gib, apiResident: 6 * gib},
			settings{quota: 5 * gib, memory: 640 * mib, api: 9 * gib},
		},
		"one that etcd is not made for is told so": {
			forecast{resident: 100 * mib, etcd: 90 * gib, change: 10 * gib, apiResident: 300 * gib},
			settings{quota: 150 * gib, memory: 192 * mib, api: 450 * gib, beyond: true},
		},
	} {
		t.Run(what, func(t *testing.T) { require.Equal(t, one.want, advise(one.forecast)) })
	}
}

func TestAmountsAreTold(t *testing.T) {
	for want, got := range map[string]string{
		"512 B": bytes(512), "1.5 KiB": bytes(1536), "-2 KiB": bytes(-2048), "95.4 GiB": bytes(95.4 * gib), "1,000 GiB": bytes(1000 * gib),
		"250 µs": seconds(0.00025), "12 ms": seconds(0.012), "59.9 s": seconds(59.9), "16.7 min": seconds(1000),
		"100,000": count(1e5), "1,234,567": count(1234567), "-12": count(-12), "0.01": digits(0.01),
	} {
		require.Equal(t, want, got)
	}
}

func TestAReportTellsEveryScenario(t *testing.T) {
	text := report{head: "Measured.", model: proportional(), limits: limits(512*mib, 16*gib)}.markdown()
	for _, s := range scenarios() {
		require.Contains(t, text, s.what)
	}
	require.Contains(t, text, "etcd's quota by default, 2 GiB")
	require.NotContains(t, text, "NaN")
	require.NotContains(t, text, "Inf")
}
