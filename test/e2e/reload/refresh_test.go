package reload

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// mounting makes a pod on node that mounts Secret shared, with that address,
// and plays its kubelet. It is younger than what is there already, so that it
// is not refreshed for that.
func (e *env) mounting(namespace, name, node, address string) {
	e.Helper()
	e.startPod(namespace, name, node, address, lab.ByVolume("shared"))
}

// startPod makes a pod of spec on node, with that address, and plays its kubelet.
// The pod is younger than what exists already.
func (e *env) startPod(namespace, name, node, address string, spec corev1.PodSpec) {
	e.Helper()
	e.SecondLater()
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	spec.NodeName = node
	pod, err := e.Admin.CoreV1().Pods(namespace).Create(e.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	require.NoError(e, lab.SetRunning(e.Context(), e.Admin, pod))
}

// marks are the annotations of a pod.
func (e *env) marks(namespace, pod string) map[string]string {
	e.Helper()
	read := lab.Read(e, e.Admin.CoreV1().Pods(namespace).Get, pod)
	return read.Annotations
}

// confirmed waits until the refresh of a pod is confirmed.
func (e *env) confirmed(namespace, pod string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		if marks := e.marks(namespace, pod); marks[mark.RefreshedFor] == "" || marks[mark.RefreshConfirmed] != marks[mark.RefreshedFor] {
			return fmt.Errorf("not confirmed")
		}
		return nil
	})
}

func TestARefreshIsConfirmedAlsoByTheNextLeader(t *testing.T) {
	const after = 4 * time.Second
	e, namespace := onNode(t, "confirm")
	e.Sections = "reload: {confirmRefreshAfter: " + after.String() + "}\n"
	h := e.StartAlone(lab.ReloadRule("confirm"))
	e.Cloned("confirm", "used", "1")
	e.mounting(namespace, "mounts", "confirm-node", "127.0.0.1")
	e.Settled(h)
	last, from := e.Refreshes(namespace)["mounts"], e.Cluster.Mark()

	e.Change("confirm", "used", "2")
	last = e.Refreshed(namespace, "mounts", last)
	e.confirmed(namespace, "mounts")
	e.Settled(h)
	patches := slices.DeleteFunc(e.Writes(from), func(r cluster.Request) bool { return r.Resource != "pods" })
	require.Len(t, patches, 2, "a refresh, and its confirmation")
	require.GreaterOrEqual(t, patches[1].Time.Sub(patches[0].Time), after, "confirmed too soon")
	e.HasMetric(h, 1, "headwater_reload_actions_total", map[string]string{"action": "Confirm"})
	e.Settled(h)

	soon := e.Sections
	e.Sections = "reload: {confirmRefreshAfter: 30s}\n" // not before the leader is killed
	e.ConfigFile(lab.ReloadRule("confirm"))
	e.HasMetric(h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	e.Change("confirm", "used", "3")
	last = e.Refreshed(namespace, "mounts", last)
	h.Kill()
	require.NotEqual(t, last, e.marks(namespace, "mounts")[mark.RefreshConfirmed])
	e.Sections = soon
	h = e.StartAlone(lab.ReloadRule("confirm"))
	e.confirmed(namespace, "mounts")
	require.Equal(t, last, e.marks(namespace, "mounts")[mark.RefreshedFor])
	e.Settled(h)
}

func TestApplicationsAreToldOfARefresh(t *testing.T) {
	asked := make(chan string, 100)
	failures := 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- fmt.Sprint(r.Method, " ", r.URL, " ", r.ContentLength)
		lab.Told("the call of an application", fmt.Sprint(r.URL, r.Header))
		if failures > 0 {
			failures--
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	address, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	e, namespace := onNode(t, "post")
	rule := pacedRule("post", "then: {httpPost: {port: "+port+", path: /-/reload}}")
	h := e.Start(rule)
	e.Cloned("post", "used", "1")
	e.mounting(namespace, "told", "post-node", address)
	e.mounting(namespace, "deaf", "post-node", "127.0.0.2")
	e.Settled(h)

	e.Change("post", "used", "2")
	e.confirmed(namespace, "told")
	delivered := map[string]string{"result": "delivered"}
	e.HasMetric(h, 1, "headwater_reload_posts_total", delivered)
	require.Equal(t, "POST /-/reload 0", <-asked)
	require.Equal(t, "POST /-/reload 0", <-asked, "it is tried again")
	require.Contains(t, e.HasEvent(namespace, "deaf", "PostFailed"), "POST /-/reload at port "+port+" failed 4 times: ")
	e.HasMetric(h, 1, "headwater_reload_posts_total", map[string]string{"result": "failed"})
	e.HasMetric(h, 1, "headwater_reload_posts_total", delivered)
	require.Empty(t, asked)
}

func TestAPodIsRefreshedForTheKeysThatItsVolumeShows(t *testing.T) {
	e, namespace := onNode(t, "items")
	items := []corev1.KeyToPath{{Key: "used", Path: "used"}}
	listed := lab.ByVolume("shared")
	listed.Volumes[0].Secret.Items = items
	projected := lab.ByVolume("shared")
	projected.Volumes[0].VolumeSource = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
		Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "shared"}, Items: items},
	}}}}
	h := e.Reloads("items")
	for name, spec := range map[string]corev1.PodSpec{"all": lab.ByVolume("shared"), "listed": listed, "projected": projected} {
		e.startPod(namespace, name, "items-node", "127.0.0.1", spec)
	}
	e.Settled(h)

	e.Change("items", "unused", "2")
	all := e.Refreshed(namespace, "all", "")
	e.Settled(h)
	require.Equal(t, map[string]string{"all": all, "listed": "", "projected": ""}, e.Refreshes(namespace))
	e.Change("items", "used", "2")
	for name, before := range map[string]string{"all": all, "listed": "", "projected": ""} {
		e.Refreshed(namespace, name, before)
	}
	before := e.Refreshes(namespace)
	e.Change("items", "unused", "3")
	e.Refreshed(namespace, "all", before["all"])
	e.Settled(h)
	require.Equal(t, before["listed"], e.Refreshes(namespace)["listed"])
}

// It gets the last value all the same.
func TestAnObjectThatKeepsChangingRefreshesItsPodsEverMoreRarely(t *testing.T) {
	e := newEnv(t)
	e.Node("noisy-node")
	namespace := e.Stage("noisy")
	h := e.StartAlone(lab.ReloadRule("noisy"))
	e.Cloned("noisy", "used", "1")
	e.mounting(namespace, "mounts", "noisy-node", "127.0.0.1")
	e.Settled(h)
	last, from, began := e.Refreshes(namespace)["mounts"], e.Cluster.Mark(), time.Now()
	const changes = 60
	for n := range changes {
		e.Change("noisy", "used", fmt.Sprint("value-", n))
		e.Cloned("noisy", "used", fmt.Sprint("value-", n))
	}
	e.confirmed(namespace, "mounts")
	e.Settled(h)
	require.NotEqual(t, last, e.Refreshes(namespace)["mounts"])
	patches := 0
	for _, write := range e.Writes(from) {
		if write.Resource == "pods" {
			patches++
		}
	}
	require.Less(t, patches, changes+2*int(time.Since(began)/(10*time.Second)), "each of them would be a refresh and its confirmation")
	out, problem, exit := e.Command(e.Viewer("noisy-viewer"), "explain", "pod/mounts", "--namespace", namespace, "--config", e.Dir+"/headwater.yaml")
	require.Zero(t, exit, problem)
	require.Contains(t, out, "nothing to do now")
}
