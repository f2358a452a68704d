package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheVerdictFollowsTheBudget(t *testing.T) {
	second, two, hundred := []time.Duration{time.Second}, []time.Duration{2 * time.Second}, []time.Duration{100 * time.Second}
	for name, test := range map[string]struct {
		add  func(*table)
		want verdict
	}{
		"a ratio at its budget":        {func(t *table) { t.ratio("", two, second, 2) }, ok},
		"a ratio over it":              {func(t *table) { t.ratio("", two, second, 1.9) }, over},
		"a latency at its budget":      {func(t *table) { t.latency("", two, second, 2*time.Second) }, ok},
		"a latency over it":            {func(t *table) { t.latency("", two, hundred, time.Second) }, over},
		"an addition at its budget":    {func(t *table) { t.added("", two, second, time.Second) }, ok},
		"an addition over it":          {func(t *table) { t.added("", two, second, time.Millisecond) }, over},
		"a time at its budget":         {func(t *table) { t.within("", two, second, 2*time.Second) }, ok},
		"a time over it":               {func(t *table) { t.within("", two, hundred, time.Second) }, over},
		"a count at its budget":        {func(t *table) { t.count("", 1, 1, "") }, ok},
		"a count a little over it":     {func(t *table) { t.count("", 1.001, 1, "") }, over},
		"one slow round of five is ok": {func(t *table) { t.ratio("", fives(1, 1, 9, 1, 1), fives(1, 1, 1, 1, 1), 1.25) }, ok},
	} {
		t.Run(name, func(t *testing.T) {
			results := &table{}
			test.add(results)
			require.Equal(t, test.want, results.rows[0].verdict)
			require.Equal(t, test.want == over, results.over())
		})
	}
}

func fives(values ...time.Duration) []time.Duration { return values }

func TestTheTableIsAligned(t *testing.T) {
	results := &table{title: "title"}
	results.count("requests", 1, 1, "")
	results.count("resident memory", 42, 100, " MiB")
	var out strings.Builder
	require.NoError(t, results.print(&out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, "title", lines[0])
	require.Equal(t, strings.Index(lines[2], "budget"), strings.Index(lines[3], "1  "+strings.Repeat(" ", 7)+"ok"), out.String())
	require.Equal(t, strings.Index(lines[2], "verdict"), strings.Index(lines[4], "ok"))
}
