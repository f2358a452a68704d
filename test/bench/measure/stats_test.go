package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedianIsTheMiddleValue(t *testing.T) {
	values := []float64{5, 1, 9}
	require.InDelta(t, 5, Median(values), 0)
	require.Equal(t, []float64{5, 1, 9}, values, "the order of rounds is kept")
	require.Equal(t, 2*time.Second, Median([]time.Duration{2 * time.Second, time.Second}))
}

func TestPercentileIsAValueThatWasMeasured(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	require.Equal(t, time.Duration(99), Percentile(hundred, 99), "one of a hundred may be worse")
	require.Equal(t, time.Duration(50), Percentile(hundred, 50))
	require.Equal(t, time.Duration(100), Percentile(hundred, 100))
	require.Equal(t, time.Duration(7), Percentile([]time.Duration{7}, 99))
}

func TestRatiosPairTheRounds(t *testing.T) {
	require.Equal(t, []float64{2, 0.5}, Ratios([]time.Duration{4, 3}, []time.Duration{2, 6}))
}
