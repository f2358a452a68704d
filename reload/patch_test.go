package reload

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
)

func TestARestartPutsItselfOnRecord(t *testing.T) {
	tests := map[string]struct {
		last     time.Time
		restarts mark.Restarts
		before   string
		after    string
	}{
		"the first":            {time.Time{}, mark.Restarts{birth}, `null`, `null`},
		"a third":              {birth.Add(-30 * time.Second), mark.Restarts{birth.Add(-90 * time.Second), birth.Add(-30 * time.Second), birth}, `"30,90"`, `"2026-01-02T03:03:35Z"`},
		"a second, days after": {birth.Add(-48 * time.Hour), mark.Restarts{birth}, `null`, `"2025-12-31T03:04:05Z"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(restartPatch(podTemplate(), "u", "b", test.last, test.restarts))
			require.NoError(t, err)
			require.JSONEq(t, `{"metadata": {"uid": "u", "annotations": {
				"headwater.dev/baseline": "b", "headwater.dev/restarted-at": "2026-01-02T03:04:05Z", "headwater.dev/restarted-before": `+test.before+`
			}}, "spec": {"template": {"metadata": {"annotations": {"headwater.dev/restarted-for": "b", "headwater.dev/restarted-after": `+test.after+`}}}}}`, string(body))
		})
	}
}
