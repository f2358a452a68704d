package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestAPlanThatChangesNothingSaysWhatIsLeftToPeople(t *testing.T) {
	for want, actions := range map[string][]plan.Action{
		"Nothing would change.": {plan.Leave},
		"Nothing would change, but not all is well: 2 × Hold, 1 × Refuse.": {plan.Hold, plan.Refuse, plan.Leave, plan.Hold},
		"Nothing would change, but not all is well: 1 × Refuse.":           {plan.Refuse},
	} {
		t.Run(want, func(t *testing.T) {
			var plan Plan
			for _, action := range actions {
				plan.Steps = append(plan.Steps, plannedStep{Action: action})
			}
			var out strings.Builder
			plan.Table(output.Options{}.Writer(&out))
			require.True(t, strings.HasSuffix(out.String(), "\n\n"+want+"\n"), out.String())
		})
	}
}

func TestAPlanOfNoPlacesHasNoTable(t *testing.T) {
	var out strings.Builder
	require.NoError(t, output.Options{}.Print(&out, Plan{}))
	require.Equal(t, "Nothing would change.\n", out.String())
}

func TestALastChangeThatTheSourceDoesNotTellIsThatOfItsSpread(t *testing.T) {
	at := time.Unix(1000, 0)
	propagation := &latestPropagation{At: at, Seconds: 2.5}
	for sentence, test := range map[string]struct {
		state  survey.SourceState
		spread *latestPropagation
		want   *time.Time
	}{
		"the source tells":            {survey.SourceState{Exists: true, ChangedAt: at}, &latestPropagation{At: at.Add(time.Hour)}, &at},
		"it does not":                 {survey.SourceState{Exists: true}, propagation, new(at.Add(-2500 * time.Millisecond))},
		"nothing tells":               {survey.SourceState{Exists: true}, nil, nil},
		"the source is not there now": {survey.SourceState{}, propagation, nil},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, lastChange(test.state, test.spread)) })
	}
}
