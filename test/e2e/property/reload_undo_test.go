package property

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/test/lab"
)

// undo takes a restart back, wherever its rollout is, by one of the ways that there
// are. Headwater leads: the next leader does not know what was taken back.
func (w *reloadWorld) undo() {
	if w.headwater == nil {
		w.start()
	}
	require.NoError(w, w.headwater.Ready(w.Context()))
	namespace, name := pick(w, reloadTargets), pick(w, workloadNames)
	undo := pick(w, []func(namespace, name string){w.stripTemplate, w.replace, w.rollBack})
	w.change()
	undo(namespace, name)
	w.comesToRest()
}

// doubtful are the workloads that lack the stamp of their last restart. A new leader
// cannot tell whether all pods were replaced since, and restarts them once if a pod
// started in the second in which its data was written (deploy/design/reload.md).
func (w *reloadWorld) doubtful() []string {
	var names []string
	for _, one := range w.workloads {
		if one.undone {
			names = append(names, one.namespace+"/"+one.name)
		}
	}
	return names
}

func (w *reloadWorld) stripTemplate(namespace, name string) {
	w.Logf("take the stamp off %s/%s", namespace, name)
	w.edited(namespace, name, func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil })
}

// replace is kubectl replace with the manifest of the owner.
func (w *reloadWorld) replace(namespace, name string) {
	w.Logf("replace %s/%s", namespace, name)
	w.edited(namespace, name, func(d *appsv1.Deployment) {
		maps.DeleteFunc(d.Annotations, func(key, _ string) bool {
			return strings.HasPrefix(key, "headwater.dev/baseline") || strings.HasPrefix(key, "headwater.dev/restarted")
		})
		d.Spec.Template.Annotations = nil
	})
}

// rollBack is kubectl rollout undo.
func (w *reloadWorld) rollBack(namespace, name string) {
	w.edited(namespace, name, func(d *appsv1.Deployment) {
		sets, err := w.Admin.AppsV1().ReplicaSets(namespace).List(w.Context(), metav1.ListOptions{
			LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector),
		})
		require.NoError(w, err)
		if len(sets.Items) == 0 {
			return
		}
		to := sets.Items[w.IntN(len(sets.Items))]
		w.Logf("roll %s/%s back to %s", namespace, name, to.Name)
		const controllers = "deployment.kubernetes.io/"
		maps.DeleteFunc(d.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, controllers) })
		for key, value := range to.Annotations {
			if !strings.HasPrefix(key, controllers) {
				metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value)
			}
		}
		d.Spec.Template = *to.Spec.Template.DeepCopy()
		delete(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	})
}

// createUnled creates a workload while nobody leads, and changes what its pods have
// read by then.
func (w *reloadWorld) createUnled() {
	w.comesToRest()
	w.Log("kill")
	w.headwater.Kill()
	w.headwater = nil
	w.made++
	namespace, name := pick(w, reloadTargets), fmt.Sprint("unled-", w.made)
	ref := object.Ref{Kind: pick(w, object.Kinds), Namespace: namespace, Name: ownName}
	if w.find(ref) == nil {
		w.start()
		return
	}
	w.SecondLater()
	spec := lab.ByNothing()
	use{ref: ref}.consume(&spec)
	w.createOf(namespace, name, 1, spec, "Auto")
	app := fmt.Sprint("app=", name, "-", w.made)
	err := lab.Eventually(w.Context(), func(ctx context.Context) error {
		pods, err := w.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: app})
		return lab.ErrorIf(err != nil || len(pods.Items) == 0 || pods.Items[0].Spec.NodeName == "", "no pod has a node yet (%w)", err)
	})
	require.NoError(w, err)
	w.SecondLater()
	found := w.find(ref)
	found.Content.Data, found.ManagedFields = maps.Clone(found.Content.Data), nil
	found.Content.Data[dataKeys[0]] = fmt.Append(nil, name) // for a key that is removed there is no time
	_, err = w.put(found)
	require.NoError(w, err)
	require.NoError(w, w.remember(w.Context()))
	for _, one := range w.workloads {
		one.unled = one.unled || one.namespace == namespace && one.name == name
	}
	w.comesToRest()
	err = w.Admin.AppsV1().Deployments(namespace).Delete(w.Context(), name, metav1.DeleteOptions{})
	require.NoError(w, err)
}
