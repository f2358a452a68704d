package grid

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACurveHasAllArrivalsAndFewPoints(t *testing.T) {
	for _, test := range []struct {
		arrivals int
		every    time.Duration
	}{{1, time.Second}, {12, time.Millisecond}, {10_000, 600 * time.Microsecond}, {1000, time.Minute}} {
		t.Run(fmt.Sprintf("%d, one in %s", test.arrivals, test.every), func(t *testing.T) {
			var curve curve
			for i := range test.arrivals {
				curve.Add(time.Duration(i) * test.every)
			}
			points := curve.Points()
			require.LessOrEqual(t, len(points), curvePoints+1)
			require.Equal(t, Point{}, points[0])
			require.Equal(t, test.arrivals, points[len(points)-1].Count)
			for i := 1; i < len(points); i++ {
				require.Greater(t, points[i].Seconds, points[i-1].Seconds)
				require.Greater(t, points[i].Count, points[i-1].Count)
				exact := int(time.Duration(points[i].Seconds*float64(time.Second)) / test.every)
				require.InDelta(t, exact, points[i].Count, float64(curve.step/test.every)+2, "it is as it was, within a step")
			}
		})
	}
}

func TestASpreadEndsWithItsLastPlace(t *testing.T) {
	s := Spread{Began: noon, Places: 3}
	s.Arrived(noon.Add(time.Second), true, false)
	s.Arrived(noon.Add(2*time.Second), false, false)
	require.Zero(t, s.Seconds, "on its way")
	s.Arrived(noon.Add(3*time.Second), true, true)
	require.Equal(t, Spread{Began: noon, Places: 3, Looked: 3, Written: 2, Seconds: 3, Curve: s.Curve}, s)
	s.Arrived(noon.Add(time.Hour), true, false)
	require.Equal(t, 1, s.Late, "it had failed before")
	require.Equal(t, 2, s.Written)
}

func TestNotesThatAreAlikeAreOne(t *testing.T) {
	var recent Recent
	note := func(what, name string, after time.Duration) {
		recent.Add(Note{At: noon.Add(after), What: what, Rule: "r", Names: []string{name}})
	}
	for i, name := range []string{"a", "b", "b", "c", "d"} {
		note("refreshed", name, time.Duration(i)*time.Second)
	}
	note("restarted", "a", 5*time.Second)
	note("restarted", "b", 5*time.Second+together)
	notes := recent.Notes()
	require.Len(t, notes, 3, "the second came too late to be told with the first")
	require.Equal(t, []string{"a", "b", "c"}, notes[2].Names)
	require.Equal(t, 5, notes[2].Count)
	for i := range 2 * recentMost {
		note(fmt.Sprint(i), "a", time.Hour)
	}
	require.Len(t, recent.Notes(), recentMost)
	require.Equal(t, fmt.Sprint(2*recentMost-1), recent.Notes()[0].What, "the latest first")
}
