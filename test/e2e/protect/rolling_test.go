package protect

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/seed"
)

// defaultRollouts is how often both replicas are replaced; HEADWATER_ROLLOUTS says
// otherwise.
const defaultRollouts = 10

// byTheWebhookAlone has every answer that is missing be seen.
const byTheWebhookAlone = "protect: {engine: Webhook}\n"

func TestARolloutFailsNoWrite(t *testing.T) {
	e := newEnv(t)
	rollouts := seed.Number(t, "HEADWATER_ROLLOUTS", defaultRollouts)
	e.Sections = byTheWebhookAlone
	r, owner, mallory := e.behindTheService("rolling")
	for range 2 {
		r.launch()
	}
	r.ready()
	e.protectedByWebhook(mallory, "rolling-src", "shared")
	load := e.newTraffic("rolling-src", "shared", "other", owner, mallory)
	var stopping sync.WaitGroup
	defer stopping.Wait()
	var stopped []*lab.Headwater
	for range rollouts {
		for _, old := range r.all()[len(r.all())-2:] { // those before them are still draining
			fresh := r.launch()
			require.NoError(t, fresh.Ready(t.Context()))
			stopping.Go(func() { r.stop(old) }) // Kubernetes does not wait for it either
			stopped = append(stopped, old)
		}
	}
	stopping.Wait()
	load.ends(e)
	for _, old := range stopped {
		require.Equal(t, 0, old.ExitCode())
	}
}

// Invariant 9, by way of the Service.
func TestWithNoReplicaOnlyProtectedObjectsAreClosed(t *testing.T) {
	e := newEnv(t)
	r, owner, mallory := e.behindTheService("nopod")
	e.ClusterRole("nopod-override", rbacv1.PolicyRule{
		APIGroups: []string{"headwater.dev"}, Resources: []string{"protectedobjects"}, ResourceNames: []string{"nopod"}, Verbs: []string{"override"},
	})
	e.Grant("", "nopod-editor", "nopod-breaker")
	e.Grant("", "nopod-override", "nopod-breaker")
	one := r.launch()
	r.ready()
	e.protected(mallory, "nopod-src", "shared")
	require.NoError(t, lab.TryEdit(t.Context(), owner, "nopod-src", "shared", "x"))
	e.protectedByPolicy(mallory, "nopod-src", "shared")
	e.failsOpen()
	r.stop(one) // and not killed: the next leader would wait for the lease
	for range 20 {
		require.NoError(t, lab.TryEdit(t.Context(), owner, "nopod-src", "shared", "x"), "a user that the rule allows, by the policies")
		require.Error(t, lab.TryEdit(t.Context(), mallory, "nopod-src", "shared", "x"))
		require.NoError(t, lab.TryEdit(t.Context(), mallory, "nopod-src", "other", "x"))
		require.NoError(t, lab.TryEdit(t.Context(), e.Client("nopod-breaker"), "nopod-src", "shared", "x"))
	}
	_, err := mallory.CoreV1().Secrets("nopod-src").Create(t.Context(), lab.Secret("nopod-src", "more", nil), metav1.CreateOptions{})
	require.NoError(t, err)
}
