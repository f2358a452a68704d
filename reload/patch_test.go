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
		restarts mark.Restarts
		want     string
	}{
		"the first": {mark.Restarts{birth}, `null`},
		"a third":   {mark.Restarts{birth.Add(-90 * time.Second), birth.Add(-30 * time.Second), birth}, `"30,90"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(restartPatch(podTemplate(), "u", "b", test.restarts))
			require.NoError(t, err)
			require.JSONEq(t, `{"metadata": {"uid": "u", "annotations": {
				"headwater.dev/baseline": "b", "headwater.dev/restarted-at": "2026-01-02T03:04:05Z", "headwater.dev/restarted-before": `+test.want+`
			}}, "spec": {"template": {"metadata": {"annotations": {"headwater.dev/restarted-for": "b"}}}}}`, string(body))
		})
	}
}
