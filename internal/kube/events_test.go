package kube

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestANoteIsNeverLongerThanTheAPIServerTakes(t *testing.T) {
	events := NewEvents(fake.NewClientset(), prometheus.NewRegistry(), zap.NewNop())
	t.Cleanup(events.Shutdown)
	var heard Event
	events.Subscribe(func(event Event) { heard = event })
	for sentence, note := range map[string]string{
		"a short one":            "short",
		"a long user name in it": "denied to " + strings.Repeat("ä", 2000),
	} {
		t.Run(sentence, func(t *testing.T) {
			events.Record(Event{About: &corev1.ObjectReference{Name: "shared"}, Note: note})
			require.LessOrEqual(t, len(heard.Note), 1024) // of the API, in bytes
			require.True(t, strings.HasPrefix(note, strings.TrimSuffix(heard.Note, "…")))
			require.Equal(t, len(note) > 1024, heard.Note != note)
		})
	}
}
