package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedianIsTheMiddleValue(t *testing.T) {
	values := []float64{5, 1, 9}
	require.InDelta(t, 5, median(values), 0)
	require.Equal(t, []float64{5, 1, 9}, values, "the order of rounds is kept")
	require.Equal(t, 2*time.Second, median([]time.Duration{2 * time.Second, time.Second}))
}

func TestPercentileIsAValueThatWasMeasured(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	require.Equal(t, time.Duration(99), percentile(hundred, 99), "one of a hundred may be worse")
	require.Equal(t, time.Duration(50), percentile(hundred, 50))
	require.Equal(t, time.Duration(100), percentile(hundred, 100))
	require.Equal(t, time.Duration(7), percentile([]time.Duration{7}, 99))
}

func TestRatiosPairTheRounds(t *testing.T) {
	require.Equal(t, []float64{2, 0.5}, ratios([]time.Duration{4, 3}, []time.Duration{2, 6}))
}

func TestCrowdsAreFewAndThenAllConsumers(t *testing.T) {
	require.Equal(t, []int{50, 1000}, crowdSizes(1000))
	require.Equal(t, []int{50}, crowdSizes(50))
	require.Equal(t, []int{30}, crowdSizes(30))
}

func TestScalesGrowToTheNumberOfClones(t *testing.T) {
	for name, test := range map[string]struct {
		clones, consumers int
		want              []int
	}{
		"fewer than the first": {30, 30, []int{30}},
		"a scale":              {1000, 1000, []int{100, 1000}},
		"between two":          {2500, 1000, []int{100, 1000, 2500}},
		"all":                  {10000, 1000, []int{100, 1000, 10000}},
		"consumers between":    {1000, 200, []int{100, 200, 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, scales(options{clones: test.clones, consumers: test.consumers}))
		})
	}
}
