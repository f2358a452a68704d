package again

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatLastsIsToldAgain(t *testing.T) {
	var m Memory[string]
	now := time.Unix(1000, 0)
	says := func(after time.Duration, text string, say, news bool) {
		t.Helper()
		now = now.Add(after)
		gotSay, gotNews := m.Say("it", text, now)
		require.Equal(t, []bool{say, news}, []bool{gotSay, gotNews})
	}
	says(0, "one", true, true)
	says(After-1, "one", false, false)
	says(1, "one", true, false)
	says(1, "two", true, true)
	says(After, "two", true, false)
	m.Forget("it")
	says(1, "two", true, true)
}

func TestWhatIsOverIsForgotten(t *testing.T) {
	var m Memory[int]
	now := time.Unix(1000, 0)
	for one := range 100 {
		say, news := m.Say(one, "it", now.Add(time.Duration(one)*After))
		require.True(t, say && news)
	}
	require.Len(t, m.last, 2)
}
