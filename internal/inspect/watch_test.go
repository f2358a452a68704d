package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestWhatIsWatchedIsWrittenInTheFormThatIsAskedFor(t *testing.T) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	status := Status{Rules: []*ruleStatus{{Name: "shared", Sources: []sourceStatus{}, Clones: map[survey.Status]int{survey.Current: 3}}}}
	for sentence, test := range map[string]struct {
		format   output.Format
		terminal bool
		want     string
	}{
		"tables that follow each other, each with its time": {output.Table, false, "2026-05-04T03:02:01Z\nRULE"},
		"a terminal, which is cleared":                      {output.Table, true, clearScreen + "2026-05-04T03:02:01Z\nRULE"},
		"JSON on a line":                                    {output.JSON, false, `{"rules":[{"name":"shared","sources":[],"clones":{"current":3}}]}` + "\n"},
		"JSON on a terminal":                                {output.JSON, true, `{"rules":[{"name":"shared","sources":[],"clones":{"current":3}}]}` + "\n"},
		"YAML as documents":                                 {output.YAML, false, "---\nrules:\n- clones:\n    current: 3\n  name: shared\n  sources: []\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			text, err := status.frame(output.Options{Format: test.format}, test.terminal, at)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(text, test.want), text)
		})
	}
}

func TestWhenProtectionWasTriedLastIsNoNewsOfAWatch(t *testing.T) {
	facts := func(tried time.Time, why string) string {
		text, err := Status{Protection: []Protection{{Rule: "shared", Tried: &tried, Why: why}}}.facts()
		require.NoError(t, err)
		return text
	}
	require.Equal(t, facts(time.Unix(1, 0), ""), facts(time.Unix(2, 0), ""))
	require.NotEqual(t, facts(time.Unix(1, 0), ""), facts(time.Unix(1, 0), "refused nothing"))
}
