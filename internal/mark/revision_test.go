package mark

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReportOnConsumersIsReadBack(t *testing.T) {
	for text, want := range map[string]ConsumersReport{
		"7 Healthy": {Revision: 7, Health: ConsumersHealthy},
		"12 Pending: Deployment/web: outside window": {Revision: 12, Health: ConsumersPending, Reason: "Deployment/web: outside window"},
		"1 Unhealthy: Deployment/web: Crashing":      {Revision: 1, Health: ConsumersUnhealthy, Reason: "Deployment/web: Crashing"},
	} {
		got, ok := ParseConsumersReport(text)
		require.True(t, ok, text)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for _, bad := range []string{"", "7", "Healthy", "7 Well", "0 Healthy", "-1 Healthy", "x Healthy", "7  Healthy"} {
		_, ok := ParseConsumersReport(bad)
		require.False(t, ok, bad)
	}
}
