package dedupe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatLastsIsToldAgain(t *testing.T) {
	var m Notes[string]
	now := time.Unix(1000, 0)
	says := func(after time.Duration, text string, want Due) {
		t.Helper()
		now = now.Add(after)
		require.Equal(t, want, m.Due("it", text, now))
	}
	says(0, "one", New)
	says(Interval-1, "one", NotDue)
	says(1, "one", Repeat)
	says(1, "two", New)
	says(Interval, "two", Repeat)
	m.Forget("it")
	says(1, "two", New)
}

func TestAConditionThatWasOverForAMinuteIsNewsThreeTimesInAnInterval(t *testing.T) {
	var m Notes[string]
	now := time.Unix(1000, 0)
	back := func(after time.Duration) Due {
		m.Over("it", now)
		m.Over("it", now.Add(after)) // it is over since the first time
		now = now.Add(after)
		return m.Due("it", "one", now)
	}
	require.Equal(t, New, m.Due("it", "one", now))
	require.Equal(t, NotDue, back(Forgotten-1), "it persists with a short break")
	require.Equal(t, NotDue, m.Due("it", "one", now.Add(Forgotten)), "and lasts on")
	require.Equal(t, Back, back(Forgotten))
	require.Equal(t, Back, back(Forgotten))
	for range 5 {
		require.Equal(t, Repeat, back(Forgotten), "counted")
	}
	require.Equal(t, Back, back(Interval))
	m.Over("other", now) // of which nothing was told
	require.Equal(t, New, m.Due("other", "one", now))
}

func TestWhatIsOverIsForgotten(t *testing.T) {
	var m Notes[int]
	now := time.Unix(1000, 0)
	for one := range 100 {
		require.Equal(t, New, m.Due(one, "it", now.Add(time.Duration(one)*Interval)))
	}
	require.Len(t, m.last, 2)
}
