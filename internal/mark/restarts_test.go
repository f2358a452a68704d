package mark

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRestartsAreReadBack(t *testing.T) {
	last := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	ago := func(seconds ...int) Restarts {
		var restarts Restarts
		for _, s := range seconds {
			restarts = append(restarts, last.Add(-time.Duration(s)*time.Second))
		}
		return restarts
	}
	tests := map[string]struct {
		restarts   Restarts
		at, before string
	}{
		"none":    {nil, "", ""},
		"one":     {ago(0), "2026-01-02T03:04:05.678Z", ""},
		"several": {ago(3600, 90, 30, 0), "2026-01-02T03:04:05.678Z", "30,90,3600"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			at, before := test.restarts.Format()
			require.Equal(t, test.at, at)
			require.Equal(t, test.before, before)
			require.Equal(t, test.restarts, ParseRestarts(at, before))
		})
	}
}

func TestWhatCannotBeReadOfRestartsIsNotThere(t *testing.T) {
	const at = "2026-01-02T03:04:05Z"
	require.Empty(t, ParseRestarts("", "30"))
	require.Empty(t, ParseRestarts("yesterday", "30"))
	for _, before := range []string{"", ",", "-30", "soon", "1e3", "99999999999999999999"} {
		require.Len(t, ParseRestarts(at, before), 1, before)
	}
	require.Len(t, ParseRestarts(at, "x,30,"), 2)
}

func TestOnlyTheRestartsOfTheLastHourStayOnRecord(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var restarts Restarts
	for minute := range 120 {
		restarts = restarts.With(begin.Add(time.Duration(minute) * 2 * time.Minute))
	}
	require.Len(t, restarts, 30)
	require.Equal(t, begin.Add(238*time.Minute), restarts[len(restarts)-1])

	for second := range 500 {
		restarts = restarts.With(begin.Add(4*time.Hour + time.Duration(second)*time.Second))
	}
	require.Len(t, restarts, maxRestarts)
	_, before := restarts.Format()
	require.LessOrEqual(t, len(before), 5*maxRestarts)

	require.Len(t, Restarts{begin}.With(begin.Add(48*time.Hour)), 1)
}

func TestARestartNotedByAClockThatWasAheadIsNotTheLast(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	require.Equal(t, Restarts{now.Add(-time.Minute), now}, Restarts{now.Add(-time.Minute), now.Add(20 * time.Hour)}.With(now))
}
