package measure

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheVerdictFollowsTheBudget(t *testing.T) {
	second, two, hundred := []time.Duration{time.Second}, []time.Duration{2 * time.Second}, []time.Duration{100 * time.Second}
	for name, test := range map[string]struct {
		add  func(*Table)
		want Verdict
	}{
		"a ratio at its budget":        {func(t *Table) { t.Ratio(Name{}, two, second, 2) }, OK},
		"a ratio over it":              {func(t *Table) { t.Ratio(Name{}, two, second, 1.9) }, Over},
		"a latency at its budget":      {func(t *Table) { t.Latency(Name{}, two, second, 2*time.Second) }, OK},
		"a latency over it":            {func(t *Table) { t.Latency(Name{}, two, hundred, time.Second) }, Over},
		"an addition at its budget":    {func(t *Table) { t.Added(Name{}, two, second, time.Second) }, OK},
		"an addition over it":          {func(t *Table) { t.Added(Name{}, two, second, time.Millisecond) }, Over},
		"the longest at its budget":    {func(t *Table) { t.AtMost(Name{}, fives(1, 2), fives(1, 1), 2) }, OK},
		"the longest over it":          {func(t *Table) { t.AtMost(Name{}, fives(1, 1, 9), fives(1, 1, 1), 8) }, Over},
		"a time at its budget":         {func(t *Table) { t.Within(Name{}, two, second, 2*time.Second) }, OK},
		"a time over it":               {func(t *Table) { t.Within(Name{}, two, hundred, time.Second) }, Over},
		"a count at its budget":        {func(t *Table) { t.Count(Name{}, 1, 1, Plain("things")) }, OK},
		"a count a little over it":     {func(t *Table) { t.Count(Name{}, 1.001, 1, Plain("things")) }, Over},
		"one slow round of five is ok": {func(t *Table) { t.Ratio(Name{}, fives(1, 1, 9, 1, 1), fives(1, 1, 1, 1, 1), 1.25) }, OK},
	} {
		t.Run(name, func(t *testing.T) {
			results := &Table{}
			test.add(results)
			require.Equal(t, test.want, results.rows[0].Verdict)
			require.Equal(t, test.want == Over, results.Over())
		})
	}
}

func fives(values ...time.Duration) []time.Duration { return values }

func TestTheTableIsAligned(t *testing.T) {
	results := &Table{Title: "title"}
	results.Count(Name{What: "requests"}, 1, 1, Plain("requests"))
	results.Count(Name{What: "resident memory"}, 42, 100, MiB)
	var out strings.Builder
	require.NoError(t, results.Print(&out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, "title", lines[0])
	require.Equal(t, strings.Index(lines[2], "budget"), strings.Index(lines[3], "1  "+strings.Repeat(" ", 7)+"ok"), out.String())
	require.Equal(t, strings.Index(lines[2], "verdict"), strings.Index(lines[4], "ok"))
	require.NotContains(t, out.String(), "floor", "no row has one")
}
