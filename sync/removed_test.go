package sync

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/internal/plantest"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
)

func TestOneEventHasTheNumberOfRemovalsBeyondTenOfARuleAndMinute(t *testing.T) {
	rule := synctest.Rule(t, nil)
	c := viewOf(t, 1, *rule).controller
	now := time.Now()
	c.ownNamespace = "headwater-system"
	c.now = func() time.Time { return now }
	c.events = events.NewRecorder(fake.NewClientset(), prometheus.NewRegistry(), zap.NewNop())
	var notes []string
	c.events.Subscribe(func(event events.Event) {
		require.Equal(t, cloneRemoved, event.Reason)
		notes = append(notes, fmt.Sprintf("%s %s: %s", event.About.Kind, event.About.Namespace, event.Note))
	})
	remove := func(i int) {
		namespace := fmt.Sprint("team-", i)
		clone := plantest.CloneOf(t, rule, synctest.Source(t, map[string]string{"k": "v"}), namespace)
		state := plan.State{Target: object.Ref{Kind: object.Secret, Namespace: namespace, Name: clone.Name}, Clone: clone}
		c.reportRemoval(state, "blog", plan.Decision{Action: plan.Remove, Reason: plan.NamespaceUnmatched})
	}
	for i := range progress.NamedRemovals + 3 {
		remove(i)
		c.reportMoreRemovals() // it may run at any time
	}
	require.Len(t, notes, progress.NamedRemovals)
	require.Equal(t, `Secret team-9: rule "blog": Headwater deleted this clone: its rule no longer selects this namespace`, notes[9])

	now = now.Add(progress.RemovalsInterval)
	c.reportMoreRemovals()
	require.Equal(t, []string{`Namespace headwater-system: rule "blog": Headwater deleted 3 more clones within a minute; its log names each`}, notes[10:])
	c.reportMoreRemovals()
	require.Len(t, notes, 11)
	remove(0)
	require.Len(t, notes, 12)
}
