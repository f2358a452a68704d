package reload

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// pacedRule is lab.ReloadRule with this pace in place of none at all.
func pacedRule(prefix, pace string) string {
	return strings.ReplaceAll(lab.ReloadRule(prefix), "debounce: 0s, minInterval: 0s", pace)
}

// read reads a Deployment.
func (e *env) read(namespace, name string) *appsv1.Deployment {
	e.Helper()
	deployment := lab.Read(e, e.Admin.AppsV1().Deployments(namespace).Get, name)
	return deployment
}

// patched patches a Deployment as its owner would.
func (e *env) patched(namespace, name, patch string) {
	e.Helper()
	_, err := e.Admin.AppsV1().Deployments(namespace).Patch(e.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(e, err)
}

func TestAWorkloadIsLeftAloneForItsInterval(t *testing.T) {
	const interval = 8 * time.Second
	e, namespace := newStage(t, "interval")
	e.Deployment(namespace, "by-env", lab.ByEnv("shared", "used"), nil)
	rule := pacedRule("interval", "debounce: 0s, minInterval: 1h")
	h := e.StartAlone(rule)
	e.Cloned("interval", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	e.Change("interval", "used", "2")
	e.Eventually(func(context.Context) error {
		return lab.ErrorIf(e.Stamps(namespace)["Deployment/by-env"] == before["Deployment/by-env"], "not restarted")
	})
	first := e.read(namespace, "by-env")

	h.Kill()
	e.Change("interval", "used", "3")
	h = e.StartAlone(rule)
	e.Waits(h, 1, "interval")
	require.Contains(t, e.HasEvent(namespace, "by-env", "RestartWaits"), "the least time after its last restart")
	e.Change("interval", "used", "4") // folded in
	e.Cloned("interval", "used", "4")
	e.Settled(h)
	e.ConfigFile(pacedRule("interval", "debounce: 0s, minInterval: "+interval.String()))
	e.Eventually(func(context.Context) error {
		return lab.ErrorIf(e.read(namespace, "by-env").Generation == first.Generation, "not restarted again")
	})
	second := e.read(namespace, "by-env")
	began, again := mark.ParseTime(first.Annotations[mark.RestartedAt]), mark.ParseTime(second.Annotations[mark.RestartedAt])
	require.GreaterOrEqual(t, again.Sub(began), interval)
	noted := mark.ParseRestarts(second.Annotations[mark.RestartedAt], second.Annotations[mark.RestartedBefore])
	require.WithinDuration(t, began, noted[0], time.Second, "to the second")
	e.Waits(h, 0, "interval")
	e.Settled(h)
	require.Equal(t, first.Generation+1, e.read(namespace, "by-env").Generation, "both changes made one restart")
}

func TestTooManyRestartsInAnHourAreHeld(t *testing.T) {
	e, namespace := newStage(t, "breaker")
	e.Deployment(namespace, "by-env", lab.ByEnv("shared", "used"), nil)
	h := e.Start(pacedRule("breaker", "debounce: 0s, minInterval: 0s, maxRestartsPerHour: 2"))
	e.Cloned("breaker", "used", "1")
	e.Settled(h)
	for _, value := range []string{"2", "3"} {
		before := e.Stamps(namespace)
		e.Change("breaker", "used", value)
		e.Restarted(namespace, before, "Deployment/by-env")
	}
	before := e.Stamps(namespace)
	e.Change("breaker", "used", "4")
	e.Waits(h, 1, "breaker")
	require.Contains(t, e.HasEvent(namespace, "by-env", "RestartWaits"), "restarted 2 times within an hour")
	e.HasMetric(h, 1, "headwater_reload_breaker_opened_total", nil)
	e.Restarted(namespace, before)

	// As if the hour had passed. Who leads remembers when it restarted a workload.
	h.Stop()
	e.patched(namespace, "by-env", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, mark.RestartedAt, mark.FormatTime(time.Now().Add(-time.Hour))))
	h = e.Start(pacedRule("breaker", "debounce: 0s, minInterval: 0s, maxRestartsPerHour: 2"))
	e.Restarted(namespace, before, "Deployment/by-env")
	e.Waits(h, 0, "breaker")
}

func TestOutsideOfTheWindowsRestartsWaitAndRefreshesDoNot(t *testing.T) {
	e, namespace := onNode(t, "window")
	spec := lab.ByEnv("shared", "used")
	spec.Volumes, spec.Containers[0].VolumeMounts = lab.ByVolume("shared").Volumes, lab.ByVolume("shared").Containers[0].VolumeMounts
	spec.NodeName = "window-node"
	e.Create(namespace, lab.Deployment(namespace, "both", 1, spec))
	pod := e.RunningPod(namespace, "both")
	e.Sections = "reload: {windows: [{schedule: 0 0 29 2 *, duration: 1h, timeZone: Europe/Berlin}]}\n"
	h := e.Reloads("window")
	e.Settled(h)
	before, last := e.Stamps(namespace), e.Refreshes(namespace)[pod]

	e.Edit("window-src", "shared", func(s *corev1.Secret) { s.Data["used"], s.Data["unused"] = []byte("2"), []byte("2") })
	e.Waits(h, 1, "window")
	require.Contains(t, e.HasEvent(namespace, "both", "RestartWaits"), "when its windows are open next")
	e.Refreshed(namespace, pod, last)
	e.Restarted(namespace, before)

	// The file changes, and the window is open.
	e.Sections = "reload: {windows: [{schedule: '* * * * *', duration: 1h}]}\n"
	e.ConfigFile(lab.ReloadRule("window"))
	e.Restarted(namespace, before, "Deployment/both")
	e.Waits(h, 0, "window")
}
