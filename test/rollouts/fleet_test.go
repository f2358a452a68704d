//go:build rollouts

package rollouts

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/apps/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/process"
)

const (
	sourceNamespace  = "rollouts-src"
	specialNamespace = "rollouts-t-special"
	source           = "shared"
	each             = 10 // Deployments in a namespace
	// roomForAll and roomForOne are what a node has room for.
	roomForAll = "all"
	roomForOne = "one"
	// patience bounds one wait for all Deployments.
	patience = 10 * time.Minute
	rules    = `rules:
- name: rollouts
  source: {kind: Secret, namespace: ` + sourceNamespace + `, name: ` + source + `}
  sync: {namespaces: {include: ["rollouts-t-*"]}}
  reload: {debounce: 0s, minInterval: 0s, maxRestartsPerHour: 0}
`
)

// fleet is a cluster full of Deployments that consume one source, and
// Headwater in it.
type fleet struct {
	*testing.T
	*place
}

// place is what the parts of the test share.
type place struct {
	*lab.Site

	kwok *process.Process
	// seen holds the Deployments, by a watch.
	seen      listers.DeploymentLister
	headwater *lab.Headwater
	// sizes are the replicas of the Deployments.
	sizes []int32
	// cloned is the revision of the last clone that the latest change wrote.
	cloned int64
}

func newFleet(t *testing.T, count int) *fleet {
	t.Helper()
	c := cluster.Shared(t)
	site, err := lab.NewSite(t.Context(), c, lab.Binary(t), filepath.Join(lab.Root(t), "deploy", "rbac.yaml"))
	require.NoError(t, err)
	f := &fleet{t, &place{Site: site}}
	for i := range count {
		f.sizes = append(f.sizes, []int32{3, 1, 2, 1, 1, 2, 1, 1, 2, 1}[i%each])
	}
	f.kwok, err = startKwok(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { f.kwok.Stop(lab.Timeout) })
	for i := range 4 {
		name := "node-" + strconv.Itoa(i)
		require.NoError(t, createNode(t.Context(), site.Admin, f.kwok, name, map[string]string{room: roomForAll}, 10_000))
	}
	require.NoError(t, createNode(t.Context(), site.Admin, f.kwok, "node-one", map[string]string{room: roomForOne}, 1))

	shared := informers.NewSharedInformerFactory(site.Admin, 0)
	f.seen = shared.Apps().V1().Deployments().Lister()
	shared.Start(t.Context().Done())
	t.Cleanup(shared.Shutdown)
	shared.WaitForCacheSync(t.Context().Done())
	return f
}

// of is f in a test within its own.
func (f *fleet) of(t *testing.T) *fleet {
	t.Helper()
	return &fleet{t, f.place}
}

func special(name string) string { return specialNamespace + "/" + name }

// configure writes the configuration with these top-level sections.
func (f *fleet) configure(sections string) {
	f.Helper()
	require.NoError(f, f.Configure(f.Context(), sections+rules))
}

// launch makes the source, and starts Headwater.
func (f *fleet) launch() {
	f.Helper()
	require.NoError(f, f.Namespaces(f.Context(), sourceNamespace))
	_, err := f.Admin.CoreV1().Secrets(sourceNamespace).Create(f.Context(),
		lab.Secret(sourceNamespace, source, map[string]string{"used": "1"}), metav1.CreateOptions{})
	require.NoError(f, err)
	f.headwater, err = f.Start(f.Context())
	require.NoError(f, err)
	f.Cleanup(f.headwater.Stop)
}

// deploy makes the Deployments, and waits until all have rolled out.
func (f *fleet) deploy() {
	f.Helper()
	for i, size := range f.sizes {
		namespace := fmt.Sprintf("rollouts-t-%04d", i/each)
		if i%each == 0 {
			require.NoError(f, f.Namespaces(f.Context(), namespace))
		}
		f.create(namespace, fmt.Sprintf("app-%04d", i), size, roomForAll)
	}
	f.rolledOut(nil)
}

// deploySpecial makes one more, of one pod for such a node, and waits until it
// has rolled out.
func (f *fleet) deploySpecial(name, on string) {
	f.Helper()
	require.NoError(f, f.Namespaces(f.Context(), specialNamespace))
	f.create(specialNamespace, name, 1, on)
	f.rolledOut(nil)
}

func (f *fleet) create(namespace, name string, replicas int32, on string) {
	f.Helper()
	spec := lab.ByEnv(source, "used")
	spec.NodeSelector = map[string]string{room: on}
	deployment := lab.Deployment(namespace, name, replicas, spec)
	created, err := f.Admin.AppsV1().Deployments(namespace).Create(f.Context(), deployment, metav1.CreateOptions{})
	require.NoError(f, err)
	f.within(func(context.Context) error {
		_, err := f.seen.Deployments(namespace).Get(created.Name)
		return err
	})
}

func (f *fleet) within(condition func(context.Context) error) {
	f.Helper()
	require.NoError(f, lab.Within(f.Context(), patience, condition))
}

// all are the Deployments as the watch has them, by namespace and name.
func (f *fleet) all() map[string]*appsv1.Deployment {
	f.Helper()
	list, err := f.seen.List(labels.Everything())
	require.NoError(f, err)
	all := map[string]*appsv1.Deployment{}
	for _, d := range list {
		all[d.Namespace+"/"+d.Name] = d
	}
	return all
}

// until waits until good is true of every Deployment but those.
func (f *fleet) until(except map[string]bool, what string, good func(name string, d *appsv1.Deployment) bool) {
	f.Helper()
	f.within(func(context.Context) error {
		if err := errors.Join(f.headwater.Failure(), f.kwok.Failure()); err != nil {
			return lab.Permanent(err)
		}
		all := f.all()
		var missing []string
		for name, d := range all {
			if !except[name] && !good(name, d) {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("%d of %d %s, one of them %s", len(missing), len(all), what, missing[0])
		}
		return nil
	})
}

func (f *fleet) rolledOut(except map[string]bool) {
	f.Helper()
	f.until(except, "have not rolled out", func(_ string, d *appsv1.Deployment) bool { return rolledOut(d) })
}

// adopted waits until Headwater has on record what all of them run.
func (f *fleet) adopted() {
	f.Helper()
	f.until(nil, "have no baseline", func(_ string, d *appsv1.Deployment) bool { return d.Annotations[mark.Baseline] != "" })
	require.NoError(f, f.headwater.Idle(f.Context()))
}

func (f *fleet) pause(name string, paused bool) {
	f.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"paused":%v}}`, paused)
	d, err := f.Admin.AppsV1().Deployments(specialNamespace).Patch(f.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(f, err)
	f.within(func(context.Context) error {
		if seen := f.all()[special(name)]; seen == nil || seen.Generation < d.Generation || seen.Status.ObservedGeneration < d.Generation {
			return errors.New("its controller does not know yet")
		}
		return nil
	})
}

func (f *fleet) remove(names ...string) {
	f.Helper()
	for _, name := range names {
		require.NoError(f, f.Admin.AppsV1().Deployments(specialNamespace).Delete(f.Context(), name, metav1.DeleteOptions{}))
		f.within(func(context.Context) error {
			return lab.ErrorIf(f.all()[special(name)] != nil, "it is still there")
		})
	}
}

// reloaded waits until the changed configuration is in force.
func (f *fleet) reloaded() {
	f.Helper()
	f.within(func(ctx context.Context) error {
		n, err := f.headwater.Metric(ctx, "headwater_config_reloads_total", map[string]string{"result": "applied"})
		if err == nil && n == 0 {
			err = errors.New("Headwater has not applied the changed configuration")
		}
		return err
	})
}

// change edits the source, waits until all but these have rolled out, and
// returns how that went by all that etcd was told.
func (f *fleet) change(version string, except ...string) course {
	f.Helper()
	before, without := map[string]string{}, map[string]bool{}
	for name, d := range f.all() {
		before[name] = d.Spec.Template.Annotations[mark.RestartedFor]
	}
	for _, name := range except {
		without[special(name)] = true
	}
	secrets := f.Admin.CoreV1().Secrets(sourceNamespace)
	began := time.Now()
	edited, err := secrets.Update(f.Context(), lab.Secret(sourceNamespace, source, map[string]string{"used": version}), metav1.UpdateOptions{})
	require.NoError(f, err)
	f.until(without, "have not rolled out", func(name string, d *appsv1.Deployment) bool {
		return d.Spec.Template.Annotations[mark.RestartedFor] != before[name] && rolledOut(d)
	})
	f.until(nil, "were not restarted", func(name string, d *appsv1.Deployment) bool {
		return d.Spec.Template.Annotations[mark.RestartedFor] != before[name]
	})
	took := time.Since(began)
	from, err := strconv.ParseInt(edited.ResourceVersion, 10, 64)
	require.NoError(f, err)
	c := follow(before, f.history(from))
	c.took = took
	load, err := process.LoadAverage()
	require.NoError(f, err)
	f.Logf("%d Deployments rolled out %.1f s after the edit, at most %d at a time (load average %s)", len(f.sizes), took.Seconds(), c.most, load)
	return c
}

// history is what there was to see of the Deployments from that revision on.
func (f *fleet) history(from int64) []sight {
	f.Helper()
	editions, _, err := f.Cluster.History(f.Context(), from, "deployments", "secrets")
	require.NoError(f, err)
	var sights []sight
	for _, edition := range editions {
		if s, ok := sightOf(edition); ok {
			sights = append(sights, s)
		} else if _, ok := edition.Object.(*corev1.Secret); ok && edition.Name == source {
			f.cloned = edition.Revision
		}
	}
	return sights
}

// replaced waits until the pods of all are those of the newest template, and
// no other is left. Of the stuck and the paused one they are the old ones.
func (f *fleet) replaced() {
	f.Helper()
	f.within(func(ctx context.Context) error {
		list, err := f.Admin.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		ready := map[string]int32{}
		all := f.all()
		for i := range list.Items {
			pod := &list.Items[i]
			d := all[pod.Namespace+"/"+pod.Labels["app"]]
			if d == nil || d.Namespace == specialNamespace {
				continue
			}
			if pod.Annotations[mark.RestartedFor] != d.Spec.Template.Annotations[mark.RestartedFor] || !isReady(pod) {
				return fmt.Errorf("pod %s/%s is an old one, or not ready", pod.Namespace, pod.Name)
			}
			ready[d.Namespace+"/"+d.Name]++
		}
		for name, d := range all {
			if d.Namespace != specialNamespace && ready[name] != *d.Spec.Replicas {
				return fmt.Errorf("%s has %d new pods that are ready, wants %d", name, ready[name], *d.Spec.Replicas)
			}
		}
		return nil
	})
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}
