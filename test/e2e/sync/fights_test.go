package sync

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// fight has another client undo each repair of a clone until stop is called.
func fight(e *env, namespace string, undo func(ctx context.Context, clone *corev1.Secret) error) (stop func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(e.Context())
	watcher, err := e.Admin.CoreV1().Secrets(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=shared"})
	require.NoError(e, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			clone, ok := event.Object.(*corev1.Secret)
			right := ok && event.Type != watch.Deleted && string(clone.Data["k"]) == "v" && clone.Labels["headwater.dev/clone"] == "true"
			if right {
				_ = undo(ctx, clone)
			}
		}
	}()
	return func() { cancel(); watcher.Stop(); <-done }
}

func TestAFightOverACloneIsDampedAndReported(t *testing.T) {
	e := newEnv(t)
	e.Secret(e.Namespace("fight-src"), "shared", map[string]string{"k": "v"})
	patch := func(body string) func(context.Context, *corev1.Secret) error {
		return func(ctx context.Context, clone *corev1.Secret) error {
			_, err := e.Admin.CoreV1().Secrets(clone.Namespace).Patch(ctx, "shared", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "rival"})
			return err
		}
	}
	undoing := map[string]func(context.Context, *corev1.Secret) error{
		// Something of its own besides, so that its name stays on the object after a repair.
		"fight-edit":  patch(`{"metadata":{"annotations":{"example.org/rival":"x"}},"data":{"k":"Zm9yZ2Vk"}}`),
		"fight-label": patch(`{"metadata":{"labels":{"headwater.dev/clone":null}}}`),
		"fight-delete": func(ctx context.Context, clone *corev1.Secret) error {
			return e.Admin.CoreV1().Secrets(clone.Namespace).Delete(ctx, "shared", metav1.DeleteOptions{})
		},
	}
	for namespace := range undoing {
		e.Namespace(namespace)
	}
	h := e.Start(`
- name: fight
  source: {kind: Secret, namespace: fight-src, name: shared}
  sync: {namespaces: {include: [fight-edit, fight-label, fight-delete]}}
`)
	data := map[string]string{"k": "v"}
	for namespace := range undoing {
		e.HasClone(namespace, "shared", data)
	}
	e.Settled(h)

	mark, began := e.Cluster.Mark(), time.Now()
	var stops []func()
	for namespace, undo := range undoing {
		stops = append(stops, fight(e, namespace, undo))
		_ = undo(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}})
	}
	require.Contains(t, e.HasEvent("fight-edit", "shared", "Fighting"), `rule "fight": field manager "rival" keeps changing this clone`)
	e.HasNote("fight-edit", "shared", "CloneReverted", `rule "fight" keeps this object equal to Secret/fight-src/shared, so what somebody changed here was undone`)
	require.Contains(t, e.HasEvent("fight-label", "shared", "Fighting"), "audit log) keeps removing Headwater's marks from this clone")
	require.Contains(t, e.HasEvent("fight-delete", "shared", "Fighting"), "audit log) keeps deleting this clone")
	e.HasMetric(h, 3, "headwater_sync_clones", map[string]string{"rule": "fight", "state": "fighting", "reason": "Fighting"})
	// Five at once, then one after each pause. Of labels that were taken off, a
	// create may be refused before.
	writes := len(e.Writes(mark)) // read before the clock is, so that a slow machine may only be let more
	require.Less(t, writes, 3*(15+int(time.Since(began)/time.Second)))

	t.Log("a change of the source waits for no pause")
	for _, stop := range stops {
		stop()
	}
	e.Edit("fight-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	for namespace := range undoing {
		e.HasClone(namespace, "shared", map[string]string{"k": "v2"})
	}
}
