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
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// pacedRule is e2e.ReloadRule with this pace in place of none at all.
func pacedRule(prefix, pace string) string {
	return strings.ReplaceAll(e2e.ReloadRule(prefix), "debounce: 0s, minInterval: 0s", pace)
}

// read reads a Deployment.
func (e *env) read(namespace, name string) *appsv1.Deployment {
	e.Helper()
	deployment, err := e.Admin.AppsV1().Deployments(namespace).Get(e.Context(), name, metav1.GetOptions{})
	require.NoError(e, err)
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
	e := newEnv(t)
	namespace := e.Stage("interval")
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
	rule := pacedRule("interval", "debounce: 0s, minInterval: "+interval.String())
	h := e.StartAlone(rule)
	e.Cloned("interval", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	e.Change("interval", "used", "2")
	e.Eventually(func(context.Context) error {
		if e.Stamps(namespace)["Deployment/by-env"] == before["Deployment/by-env"] {
			return fmt.Errorf("not restarted")
		}
		return nil
	})
	first := e.read(namespace, "by-env")

	h.Kill()
	e.Change("interval", "used", "3")
	h = e.StartAlone(rule)
	e.Waits(h, 1, "interval")
	require.Contains(t, e.HasEvent(namespace, "by-env", "RestartWaits"), "the least time after its last restart")
	e.Change("interval", "used", "4") // folded in
	e.Eventually(func(context.Context) error {
		if e.read(namespace, "by-env").Generation == first.Generation {
			return fmt.Errorf("not restarted again")
		}
		return nil
	})
	second := e.read(namespace, "by-env")
	began, again := mark.ParseTime(first.Annotations[mark.RestartedAt]), mark.ParseTime(second.Annotations[mark.RestartedAt])
	require.GreaterOrEqual(t, again.Sub(began), interval)
	require.Equal(t, "8", second.Annotations[mark.RestartedBefore])
	e.Waits(h, 0, "interval")
	e.Settled(h)
	require.Equal(t, first.Generation+1, e.read(namespace, "by-env").Generation, "both changes made one restart")
}

func TestTooManyRestartsInAnHourAreHeld(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("breaker")
	e.Deployment(namespace, "by-env", harness.ByEnv("shared", "used"), nil)
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

	// As if the hour had passed.
	e.patched(namespace, "by-env", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, mark.RestartedAt, mark.FormatTime(time.Now().Add(-time.Hour))))
	e.Restarted(namespace, before, "Deployment/by-env")
	e.Waits(h, 0, "breaker")
}

// burst is a series of edits of one key.
type burst struct {
	pace   string
	values []string
	every  time.Duration
	// least and most are how many rollouts it makes.
	least, most int64
}

// bursts are every shape that edits come in, by the prefix of e2e.ReloadRule. The key
// is 1 before the first of them.
func bursts() map[string]burst {
	values := func(n int, value func(i int) string) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = value(i)
		}
		return all
	}
	another := func(i int) string { return fmt.Sprint("v", i) }
	toAndFro := func(i int) string { return []string{"2", "1"}[i%2] }
	return map[string]burst{
		"one-edit":  {"debounce: 1s, minInterval: 30s", values(1, another), 0, 1, 1},
		"at-once":   {"debounce: 1s, minInterval: 30s", values(10, another), 0, 1, 1},
		"in-a-row":  {"debounce: 1s, minInterval: 30s", values(10, another), 50 * time.Millisecond, 1, 1},
		"there-and": {"debounce: 1s, minInterval: 0s", values(2, toAndFro), 100 * time.Millisecond, 0, 0},
		// A change puts off those that wait, but not for more than 10 s: the workload
		// would never hear of any.
		"no-end":    {"debounce: 1s, minInterval: 0s", values(120, another), 100 * time.Millisecond, 2, 4},
		"a-trickle": {"debounce: 0s, minInterval: 2s", values(20, another), 250 * time.Millisecond, 2, 5},
		// After three, the least time between two doubles.
		"flapping": {"debounce: 0s, minInterval: 1s", values(60, toAndFro), 100 * time.Millisecond, 2, 6},
	}
}

func TestHowManyRolloutsABurstMakes(t *testing.T) {
	e := newEnv(t)
	bursts, rules, before := bursts(), "", map[string]int64{}
	for name, burst := range bursts {
		e.Deployment(e.Stage(name), "by-env", harness.ByEnv("shared", "used"), nil)
		rules += pacedRule(name, burst.pace)
	}
	h := e.Start(rules)
	for name := range bursts {
		e.Cloned(name, "used", "1")
	}
	e.Settled(h)
	for name := range bursts {
		before[name] = e.read(name+"-a", "by-env").Generation
	}
	t.Run("bursts", func(t *testing.T) {
		for name, burst := range bursts {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				burst.play(&env{e.Of(t)}, name)
			})
		}
	})
	e.HasMetric(h, 0, "headwater_reload_waiting", nil)
	e.Settled(h)
	e.HasMetric(h, 0, "headwater_reload_waiting", nil)
	for name, burst := range bursts {
		rollouts := e.read(name+"-a", "by-env").Generation - before[name]
		require.GreaterOrEqual(t, rollouts, burst.least, name)
		require.LessOrEqual(t, rollouts, burst.most, name)
	}
}

// play edits the source until the last value is cloned.
func (b burst) play(e *env, prefix string) {
	ticker := time.NewTicker(max(b.every, time.Millisecond))
	defer ticker.Stop()
	for _, value := range b.values {
		<-ticker.C
		e.Change(prefix, "used", value)
	}
	e.Cloned(prefix, "used", b.values[len(b.values)-1])
}

func TestSeveralObjectsThatChangeAtOnceMakeOneRollout(t *testing.T) {
	e := newEnv(t)
	e.Sections = e2e.Unpaced
	namespace := e.Stage("several")
	names := []string{"own-a", "own-b"}
	spec := harness.ByEnv("shared", "used")
	for _, name := range names {
		e.Secret(namespace, name, map[string]string{"k": "1"})
		spec.Containers[0].EnvFrom = append(spec.Containers[0].EnvFrom, harness.ByEnvFrom(name).Containers[0].EnvFrom...)
	}
	h := e.Start(pacedRule("several", "debounce: 2s, minInterval: 0s"))
	e.Cloned("several", "used", "1")
	e.Deployment(namespace, "web", spec, map[string]string{mark.Reload: "Auto"})
	e.adoptedAnew(namespace, "web", "")
	e.Settled(h)
	before, generation := e.Stamps(namespace), e.read(namespace, "web").Generation

	e.Change("several", "used", "2")
	for _, name := range names {
		e.SetKey(namespace, name, "k", "2")
	}
	e.Restarted(namespace, before, "Deployment/web")
	e.Settled(h)
	require.Equal(t, generation+1, e.read(namespace, "web").Generation)
}

// As kustomize does, whose objects have a hash of their data in their names.
func TestAnObjectOfAnotherNameRestartsNothing(t *testing.T) {
	e := newEnv(t)
	e.Node("renamed-node")
	e.Sections = e2e.Unpaced
	namespace := e.Stage("renamed")
	e.Secret(namespace, "config-1", map[string]string{"k": "1"})
	h := e.Start(e2e.ReloadRule("renamed"))
	e.serving(namespace, "web", 2, harness.ByEnvFrom("config-1"))
	e.patched(namespace, "web", `{"metadata":{"annotations":{"headwater.dev/reload":"Auto"}}}`)
	e.adoptedAnew(namespace, "web", "")
	e.Settled(h)

	e.Secret(namespace, "config-2", map[string]string{"k": "2"})
	e.patched(namespace, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"app","envFrom":[{"secretRef":{"name":"config-2"}}]}]}}}}`)
	require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "config-1", metav1.DeleteOptions{}))
	e.rolledOut(namespace, "web")
	e.Settled(h)
	require.Equal(t, 2, e.rollouts(namespace, "web"))
	require.Empty(t, e.Stamps(namespace)["Deployment/web"])
}

func TestOutsideOfTheWindowsRestartsWaitAndRefreshesDoNot(t *testing.T) {
	e := newEnv(t)
	e.Node("window-node")
	namespace := e.Stage("window")
	spec := harness.ByEnv("shared", "used")
	spec.Volumes, spec.Containers[0].VolumeMounts = harness.ByVolume("shared").Volumes, harness.ByVolume("shared").Containers[0].VolumeMounts
	spec.NodeName = "window-node"
	_, err := e.Admin.AppsV1().Deployments(namespace).Create(t.Context(), harness.Deployment(namespace, "both", 1, spec), metav1.CreateOptions{})
	require.NoError(t, err)
	pod := e.RunningPod(namespace, "both")
	e.Sections = "reload: {windows: [{schedule: 0 0 29 2 *, duration: 1h, timeZone: Europe/Berlin}]}\n"
	h := e.Start(e2e.ReloadRule("window"))
	e.Cloned("window", "used", "1")
	e.Settled(h)
	before, last := e.Stamps(namespace), e.Refreshes(namespace)[pod]

	e.Edit("window-src", "shared", func(s *corev1.Secret) { s.Data["used"], s.Data["unused"] = []byte("2"), []byte("2") })
	e.Waits(h, 1, "window")
	require.Contains(t, e.HasEvent(namespace, "both", "RestartWaits"), "the next of reload.windows opens at 20")
	e.Refreshed(namespace, pod, last)
	e.Restarted(namespace, before)

	// The file changes, and the window is open.
	e.Sections = "reload: {windows: [{schedule: '* * * * *', duration: 1h}]}\n"
	e.ConfigFile(e2e.ReloadRule("window"))
	e.Restarted(namespace, before, "Deployment/both")
	e.Waits(h, 0, "window")
}
