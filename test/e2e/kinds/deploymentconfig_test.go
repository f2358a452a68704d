package kinds

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// No OpenShift runs here: its API server serves the kind by itself, without a
// definition, which is looked for at intervals.
func TestDeploymentConfigsTakeTurnsAndMayBeLeftAlone(t *testing.T) {
	e, namespace := newStage(t, "openshift")
	configs := e.kind("apps.openshift.io", "v1", "DeploymentConfig")
	e.Sections = "reload: {maxConcurrentRollouts: 1}\n"
	h := e.Reloads("openshift")
	configs.standing(h, "Absent")
	configs.install()
	configs.standing(h, "Full")

	off := mark.Reload + ": 'Off'"
	for name, content := range map[string]string{
		"one":   "spec: {replicas: 1, template: " + podReading + "}",
		"other": "spec: {replicas: 2, template: " + podReading + "}",
		"off":   "metadata: {annotations: {" + off + "}}\nspec: {replicas: 1, template: " + podReading + "}",
		"off-within": "spec: {replicas: 1, template: {metadata: {annotations: {" + off + "}}, " +
			podReading[len("{metadata: {labels: {app: x}}, "):] + "}",
	} {
		configs.create(namespace, name, content)
		configs.rolledOut(namespace, name)
	}
	configs.adopted(namespace, "one")
	configs.adopted(namespace, "other")
	e.Settled(h)
	stamped := func(want int) (names []string) {
		t.Helper()
		so := func(ctx context.Context) (err error) {
			if names, err = configs.stamps(ctx, namespace); err == nil && len(names) != want {
				err = fmt.Errorf("restarted: %v; should be %d", names, want)
			}
			return err
		}
		e.Eventually(so)
		e.Stays(so)
		return names
	}

	before := e.Cluster.Mark()
	e.Change("openshift", "used", "2")
	e.Waits(h, 1, "rollouts")
	first := stamped(1)
	configs.rolledOut(namespace, first[0])
	both := stamped(2)
	require.Equal(t, []string{"one", "other"}, slices.Sorted(slices.Values(both)))
	e.Settled(h)
	require.Len(t, e.writesTo(before, "deploymentconfigs"), 2, "one write for each")
}
