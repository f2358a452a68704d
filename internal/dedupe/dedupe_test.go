package dedupe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatLastsIsToldAgain(t *testing.T) {
	var m Notes[string]
	now := time.Unix(1000, 0)
	says := func(after time.Duration, text string, say, news bool) {
		t.Helper()
		now = now.Add(after)
		gotSay, gotNews := m.ShouldEmit("it", text, now)
		require.Equal(t, []bool{say, news}, []bool{gotSay, gotNews})
	}
	says(0, "one", true, true)
	says(Interval-1, "one", false, false)
	says(1, "one", true, false)
	says(1, "two", true, true)
	says(Interval, "two", true, false)
	m.Forget("it")
	says(1, "two", true, true)
}

func TestWhatIsOverIsForgotten(t *testing.T) {
	var m Notes[int]
	now := time.Unix(1000, 0)
	for one := range 100 {
		say, news := m.ShouldEmit(one, "it", now.Add(time.Duration(one)*Interval))
		require.True(t, say && news)
	}
	require.Len(t, m.last, 2)
}
