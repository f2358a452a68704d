package inspect

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/sync/plan"
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
