package grid

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
