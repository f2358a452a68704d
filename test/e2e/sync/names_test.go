package sync

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/test/lab"
)

// An immutable object can only be deleted and created again, as `kubectl replace --force` does.
func TestANameThatWasForeignIsLeftToWhoReplacesTheirObject(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("replaced-src", "replaced-a")
	e.Secret("replaced-src", "shared", map[string]string{"k": "v"})
	theirs := func() { e.Create("replaced-a", lab.Secret("replaced-a", "shared", map[string]string{"k": "theirs"})) }
	remove := func() {
		require.NoError(t, e.Admin.CoreV1().Secrets("replaced-a").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	}
	theirs()
	h := e.Start(lab.Rule("replaced", `sync: {namespaces: {include: [replaced-a]}}`))
	e.HasEvent("replaced-a", "shared", "Conflict")
	for range 3 {
		e.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "replaced", "state": "conflict"})
		remove()
		e.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "replaced", "state": "behind", "reason": "NameFree"})
		theirs() // fails if there is a clone
	}
	e.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "replaced", "state": "conflict"})
	gone := time.Now()
	remove()
	e.HasClone("replaced-a", "shared", map[string]string{"k": "v"})
	created := e.Get("replaced-a", "shared").CreationTimestamp.Time
	require.False(t, created.Before(gone.Add(progress.NameStaysFree).Truncate(time.Second)), "it took the name after %s", created.Sub(gone))
	require.Contains(t, e.HasEvent("replaced-a", "shared", "NameTaken"), "an object of somebody else had this name until")
}
