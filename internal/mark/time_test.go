package mark

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimesAreReadBack(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.FixedZone("", 3600))
	require.Equal(t, "2026-01-02T02:04:05.678Z", FormatTime(at))
	require.True(t, at.Truncate(time.Millisecond).Equal(ParseTime(FormatTime(at))))
	for _, text := range []string{"", "yesterday", "1767323045"} {
		require.True(t, ParseTime(text).IsZero(), text)
	}
}
