package reload

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// asks is the wish of an owner for their own objects.
var asks = map[string]string{mark.Reload: "Auto"}

// running makes a Deployment of one pod that runs, with annotations.
func (e *env) running(namespace, name string, spec corev1.PodSpec, annotations map[string]string) {
	e.Helper()
	e.deployed(namespace, name, spec, annotations)
	e.rolledOut(namespace, name)
}

// Invariant 7: a change is not lost because nobody saw the workload before it.
func TestWorkloadsMadeWhileNobodyLedAreRestartedForWhatTheirPodsMissed(t *testing.T) {
	e, namespace := onNode(t, "night")
	e.Secret(namespace, "own", map[string]string{"used": "1"})
	h := e.Reloads("night")
	e.Settled(h)
	h.Stop()

	e.SecondLater()
	e.running(namespace, "by-owner", lab.ByEnvFrom("own"), asks)
	e.running(namespace, "by-rule", lab.ByEnv("shared", "used"), nil)
	e.running(namespace, "mounts", lab.ByVolume("own"), asks)
	e.SecondLater()
	e.SetKey(namespace, "own", "used", "2")
	e.Change("night", "used", "2")
	e.SecondLater()
	e.running(namespace, "younger", lab.ByEnvFrom("own"), asks)
	before := e.Stamps(namespace)
	h = e.Start(lab.ReloadRule("night"))
	e.Restarted(namespace, before, "Deployment/by-owner", "Deployment/by-rule")
	require.Contains(t, e.HasEvent(namespace, "by-owner", "Restarted"), "Secret/"+namespace+"/own")
	e.rolledOut(namespace, "by-owner")
	e.rolledOut(namespace, "by-rule")
	e.Settled(h)
	require.Equal(t, 2, e.rollouts(namespace, "by-owner"), "it is restarted once")
}

// Invariant 7: while the restart waits, what pods missed is recorded.
func TestWhatPodsMissedOutlivesALeaderWhileTheRestartWaits(t *testing.T) {
	e := newEnv(t)
	e.Node("missing-node")
	namespace := e.Stage("waits")
	e.Secret(namespace, "own", map[string]string{"used": "1"})
	h := e.Start(lab.ReloadRule("waits"))
	e.Settled(h)
	h.Stop()
	e.SecondLater()
	e.running(namespace, "web", lab.ByEnvFrom("own"), asks)
	e.SecondLater()
	e.SetKey(namespace, "own", "used", "2")
	before := e.Stamps(namespace)

	e.Sections = "reload: {windows: [{schedule: 0 0 29 2 *, duration: 1h}]}\n"
	h = e.Start(lab.ReloadRule("waits"))
	e.Waits(h, 1, "window")
	e.adoptedAnew(namespace, "web", "")
	h.Stop()
	e.Sections = ""
	e.Start(lab.ReloadRule("waits"))
	e.Restarted(namespace, before, "Deployment/web")
}

// Invariant 6: an installation restarts nothing, whatever there is.
func TestAnInstallationRestartsNothingThatIsOlder(t *testing.T) {
	e, namespace := onNode(t, "install")
	e.Secret(namespace, "own", map[string]string{"used": "1"})
	e.running(namespace, "web", lab.ByEnvFrom("own"), asks)
	e.SecondLater()
	e.SetKey(namespace, "own", "used", "2")
	// Other tests may have installed it already.
	_ = e.Admin.CoreV1().Secrets(lab.Namespace).Delete(t.Context(), digestkey.SecretName, metav1.DeleteOptions{})
	h := e.Start(lab.ReloadRule("install"))
	before := e.Adopted(h, namespace, "web")
	e.Restarted(namespace, before)
	e.SetKey(namespace, "own", "used", "3")
	e.Restarted(namespace, before, "Deployment/web")
}

// Invariant 6: what pods wait for is no change when it is created, and an owner who
// asks for the first time begins with the data of now.
func TestPodsThatWaitedForACloneAreNotRestartedForIt(t *testing.T) {
	e, namespace := onNode(t, "order")
	e.Secret(namespace, "own", map[string]string{"used": "1"})
	h := e.Reloads("order")
	h.Stop()
	require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.SecondLater()
	e.deployed(namespace, "web", lab.ByEnv("shared", "used"), nil)
	e.bound(namespace, "web")
	e.running(namespace, "late", lab.ByEnvFrom("own"), nil)
	e.SecondLater()
	e.SetKey(namespace, "own", "used", "2")

	h = e.Reloads("order")
	e.rolledOut(namespace, "web")
	before := e.Adopted(h, namespace, "web")
	e.patched(namespace, "late", `{"metadata":{"annotations":{"headwater.dev/reload":"Auto"}}}`)
	e.Adopted(h, namespace, "late")
	e.Restarted(namespace, before)
}
