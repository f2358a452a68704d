package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/sync"
)

func TestWhatIsWatchedIsWrittenInTheFormThatIsAskedFor(t *testing.T) {
	spreading := Progress{[]RuleProgress{{"shared", map[sync.Standing]int{sync.Current: 3, sync.Behind: 1}}, {"new", map[sync.Standing]int{}}}}
	const bars = "shared               [##############################----------] 3/4 current  1 behind\nnew                  no clones yet\n"
	for sentence, test := range map[string]struct {
		progress Progress
		format   Format
		terminal bool
		want     string
	}{
		"lines that follow each other":     {spreading, Table, false, bars},
		"a terminal, which is cleared":     {spreading, Table, true, clearScreen + bars},
		"JSON on a line":                   {spreading, JSON, false, `{"rules":[{"name":"shared","clones":{"behind":1,"current":3}},{"name":"new","clones":{}}]}` + "\n"},
		"JSON on a terminal":               {Progress{[]RuleProgress{}}, JSON, true, `{"rules":[]}` + "\n"},
		"YAML as documents":                {Progress{spreading.Rules[:1]}, YAML, false, "---\nrules:\n- clones:\n    behind: 1\n    current: 3\n  name: shared\n"},
		"a file of rules that do not sync": {Progress{}, Table, false, "no rule clones anything\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			text, err := test.progress.frame(test.format, test.terminal)
			require.NoError(t, err)
			require.Equal(t, test.want, text)
		})
	}
}
