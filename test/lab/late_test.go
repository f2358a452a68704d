package lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLongestDelayIsThatOfItsTime(t *testing.T) {
	began := time.Now().Add(-time.Hour)
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	d := &Delays{probes: []probe{{at(0), at(3)}, {at(10), at(11)}, {at(20), at(22)}}, pending: at(30)}
	for sentence, test := range map[string]struct{ from, to, want float64 }{
		"all within":          {0, 25, 3},
		"one begun before":    {10.5, 15, 1},
		"one that ends after": {15, 21, 2},
		"none":                {4, 9, 0},
	} {
		t.Run(sentence, func(t *testing.T) { require.InDelta(t, test.want, d.Longest(at(test.from), at(test.to)).Seconds(), 0) })
	}
	require.Greater(t, d.Longest(at(29), at(31)), 50*time.Minute, "what is not seen yet counts")
}
