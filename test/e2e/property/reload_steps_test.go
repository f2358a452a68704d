package property

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/test/lab"
)

// data is an object whose data the test itself writes.
func (w *reloadWorld) data() object.Ref {
	ref := object.Ref{Kind: pick(w, object.Kinds), Namespace: reloadSource, Name: sharedName}
	if w.oneIn(3) {
		ref.Namespace, ref.Name = pick(w, reloadTargets), ownName
	}
	return ref
}

func (w *reloadWorld) change() { w.changeData(w.data()) }

// changeOften is a burst, in which the data may well become what it was.
func (w *reloadWorld) changeOften() {
	ref := w.data()
	for range 2 + w.IntN(4) {
		w.changeData(ref)
	}
}

// changeData gives one key of ref another value, or takes it away.
func (w *reloadWorld) changeData(ref object.Ref) {
	key, value := pick(w, dataKeys), fmt.Appendf(nil, "v%d", w.IntN(5))
	remove := w.oneIn(20)
	found := w.find(ref)
	if found == nil {
		w.putData(ref, nil)
		return
	}
	found.Content.Data = maps.Clone(found.Content.Data)
	if found.Content.Data == nil {
		found.Content.Data = map[string][]byte{}
	}
	if found.Content.Data[key] = value; remove {
		delete(found.Content.Data, key)
	}
	w.Logf("change %s: %s", ref, payload(found.Content))
	found.ManagedFields = nil
	_, err := w.put(found)
	require.NoError(w, err)
}

// putData makes ref of content, by default one with all keys.
func (w *reloadWorld) putData(ref object.Ref, content *object.Content) {
	full := &object.Full{ObjectMeta: object.NewMeta(ref), Kind: ref.Kind}
	if content != nil {
		full.Content = *content
	} else {
		full.Content.Data = map[string][]byte{}
		for _, key := range dataKeys {
			full.Content.Data[key] = []byte("v0")
		}
	}
	w.Logf("make %s: %s", ref, payload(full.Content))
	_, err := w.put(full)
	require.NoError(w, err)
}

// drop takes an object away for a while.
func (w *reloadWorld) drop() {
	ref := w.data()
	w.Logf("delete %s", ref)
	w.remove(ref)
}

// label changes nothing of the data.
func (w *reloadWorld) label() {
	ref, value := w.data(), fmt.Sprint("l", w.made+w.IntN(100))
	found := w.find(ref)
	if found == nil {
		return
	}
	w.Logf("label %s", ref)
	found.ManagedFields, found.Labels, found.Annotations = nil, map[string]string{"label": value}, map[string]string{"note": value}
	_, err := w.put(found)
	require.NoError(w, err)
}

// recreate deletes an object and makes it again with the same data.
func (w *reloadWorld) recreate() {
	ref := w.data()
	if found := w.find(ref); found != nil {
		w.Logf("recreate %s", ref)
		w.remove(ref)
		w.putData(ref, &found.Content)
	}
}

func (w *reloadWorld) deleteClone() {
	ref := object.Ref{Kind: pick(w, object.Kinds), Namespace: pick(w, reloadTargets), Name: sharedName}
	w.Logf("delete %s", ref)
	w.remove(ref)
}

// putWorkload makes a workload, or gives one other uses.
func (w *reloadWorld) putWorkload() {
	namespace, name := pick(w, reloadTargets), pick(w, workloadNames)
	deployments := w.Admin.AppsV1().Deployments(namespace)
	found, err := deployments.Get(w.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		w.create(namespace, name)
		return
	}
	require.NoError(w, err)
	spec := w.spec(namespace)
	w.edited(namespace, found.Name, func(d *appsv1.Deployment) {
		w.Logf("%s/%s consumes %+v", namespace, name, usesOf(namespace, &spec))
		d.Spec.Template.Spec = spec
	})
}

func (w *reloadWorld) create(namespace, name string) {
	replicas := pick(w, []int32{0, 1, 2})
	if name == refusedName {
		replicas = 0 // or its ReplicaSets could not be told of
	}
	w.createOf(namespace, name, replicas, w.spec(namespace), pick(w, wishes))
}

func (w *reloadWorld) createOf(namespace, name string, replicas int32, spec corev1.PodSpec, wish string) {
	w.made++
	deployment := lab.Deployment(namespace, name, replicas, spec)
	app := map[string]string{"app": fmt.Sprint(name, "-", w.made)}
	deployment.Annotations, deployment.Labels = wishOf(wish), app
	deployment.Spec.Selector.MatchLabels, deployment.Spec.Template.Labels = app, app
	w.Logf("create %s/%s: %d of %+v, %v", namespace, name, replicas, usesOf(namespace, &deployment.Spec.Template.Spec), deployment.Annotations)
	w.Create(namespace, deployment)
}

// edited edits a workload as its owner does.
func (w *reloadWorld) edited(namespace, name string, edit func(*appsv1.Deployment)) {
	deployments := w.Admin.AppsV1().Deployments(namespace)
	for {
		found, err := deployments.Get(w.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return
		}
		require.NoError(w, err)
		edit(found)
		_, err = deployments.Update(w.Context(), found, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) { // its controller wrote the status
			require.NoError(w, err)
			return
		}
	}
}

// newVersion is a rollout that the owner wants for reasons of their own.
func (w *reloadWorld) newVersion(namespace, name string) {
	w.Logf("a new version of %s/%s", namespace, name)
	w.made++
	image := fmt.Sprint("app:", w.made)
	w.edited(namespace, name, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
}

func (w *reloadWorld) deploy() { w.newVersion(pick(w, reloadTargets), pick(w, workloadNames)) }

// upgrade changes a workload and its data together, in either order.
func (w *reloadWorld) upgrade() {
	namespace, name, ref := pick(w, reloadTargets), pick(w, workloadNames), w.data()
	both := []func(){func() { w.changeData(ref) }, func() { w.newVersion(namespace, name) }}
	if w.oneIn(2) {
		slices.Reverse(both)
	}
	both[0]()
	both[1]()
}

// wish has the owner of a workload want something else.
func (w *reloadWorld) wish() {
	namespace, name, wish := pick(w, reloadTargets), pick(w, workloadNames), pick(w, wishes)
	w.Logf("%s/%s wants %q", namespace, name, wish)
	w.edited(namespace, name, func(d *appsv1.Deployment) {
		delete(d.Annotations, mark.Reload)
		for key, value := range wishOf(wish) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value)
		}
	})
}

func (w *reloadWorld) deleteWorkload() {
	namespace, name := pick(w, reloadTargets), pick(w, workloadNames)
	w.Logf("delete %s/%s", namespace, name)
	err := w.Admin.AppsV1().Deployments(namespace).Delete(w.Context(), name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(w, err)
	}
}

// kill kills Headwater, wherever it is. The next starts now or later.
func (w *reloadWorld) kill() {
	later := w.oneIn(2)
	if w.headwater != nil {
		w.Log("kill")
		w.headwater.Kill()
		w.headwater = nil
	}
	if !later {
		w.start()
	}
}

func (w *reloadWorld) restartAPIServer() {
	crash := w.oneIn(2)
	w.Logf("restart the API server, by a crash: %t", crash)
	if crash {
		require.NoError(w, w.Cluster.KillAPIServer())
		require.NoError(w, w.Cluster.StartAPIServer(w.Context()))
	} else {
		require.NoError(w, w.Cluster.RestartAPIServer(w.Context()))
	}
}

// refuse has somebody's policy refuse every change of one workload.
func (w *reloadWorld) refuse() {
	if w.refused == "" {
		w.Log("refuse")
		w.allowed = w.RefuseUpdatesOf(reloadTargets[0], refusedName)
		w.refused = refusedName
	}
}

func (w *reloadWorld) allow() {
	if w.refused != "" {
		w.Log("allow")
		w.allowed()
		w.refused = ""
	}
}
