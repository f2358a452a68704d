package sync

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/lab"
)

// rotation is a rule with a selector, whose sources have names that end in a hash of
// their content.
func rotation(e *env, prefix, sync string) (rule string, create, remove func(name string), have func(name string)) {
	e.Helper()
	e.Namespace(prefix + "-src")
	for i := range 5 {
		e.Namespace(fmt.Sprintf("%s-%d", prefix, i), "rotation="+prefix)
	}
	rule = fmt.Sprintf("- name: %s\n  source: {kind: Secret, namespace: %[1]s-src, selector: {matchLabels: {rotates: yes-%[1]s}}}\n"+
		"  sync: {namespaces: {selector: {matchLabels: {rotation: %[1]s}}}, onSourceDeleted: Delete%s}\n", prefix, sync)
	create = func(name string) {
		source := lab.Secret(prefix+"-src", name, map[string]string{"k": name})
		source.Labels = map[string]string{"rotates": "yes-" + prefix}
		e.Create(prefix+"-src", source)
	}
	remove = func(name string) {
		require.NoError(e, e.Admin.CoreV1().Secrets(prefix+"-src").Delete(e.Context(), name, metav1.DeleteOptions{}))
	}
	have = func(name string) {
		for i := range 5 {
			e.HasClone(fmt.Sprintf("%s-%d", prefix, i), name, map[string]string{"k": name})
		}
	}
	return rule, create, remove, have
}

// apart waits until a source that is created is no longer one of those that were created
// together with the source of that clone.
func (e *env) apart(namespace, name string) {
	e.Helper()
	first := e.Get(namespace, name).CreationTimestamp
	e.Eventually(func(ctx context.Context) error {
		now, err := e.Admin.CoreV1().Secrets(namespace).Create(ctx, lab.Secret(namespace, "now", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return errors.Join(err, lab.ErrorIf(now.CreationTimestamp.Sub(first.Time) < 31*time.Second, "created together"))
	})
}

func TestASourceThatAnotherReplacesIsNoMassRemoval(t *testing.T) {
	e := newEnv(t)
	rule, create, remove, have := rotation(e, "rotate", "")
	gone := func(name string) {
		for i := range 5 {
			e.HasNone(fmt.Sprintf("rotate-%d", i), name)
		}
	}
	create("app-1")
	h := e.StartAlone(rule)
	have("app-1")
	e.apart("rotate-0", "app-1")
	create("app-2")
	have("app-2")
	remove("app-1")
	gone("app-1")

	remove("app-2") // nothing came for it
	e.HasNote(lab.Namespace, lab.Namespace, "MassRemoval", `5 of the 5 clones of rule "rotate"`)
	e.HasMetric(h, 5, "headwater_sync_clones", map[string]string{"rule": "rotate", "state": "held", "reason": "MassRemoval"})
	h.Kill()
	h = e.StartAlone(rule)
	e.HasMetric(h, 5, "headwater_sync_clones", map[string]string{"rule": "rotate", "state": "held", "reason": "MassRemoval"})
	have("app-2")
	e.apart("rotate-0", "app-2")
	create("app-3")
	have("app-3")
	gone("app-2")
}

func TestARuleMayHaveAMaxDeleteFractionOfItsOwn(t *testing.T) {
	e := newEnv(t)
	free, create, remove, have := rotation(e, "ownshare", ", maxDeleteFraction: 1")
	careful, createCareful, _, haveCareful := rotation(e, "ownnone", ", maxDeleteFraction: 0")
	create("app")
	createCareful("app")
	h := e.Start(free + careful)
	have("app")
	haveCareful("app")
	remove("app")
	for i := range 5 {
		e.HasNone(fmt.Sprintf("ownshare-%d", i), "app")
	}
	patch := []byte(`{"metadata":{"labels":{"rotation":null}}}`)
	_, err := e.Admin.CoreV1().Namespaces().Patch(t.Context(), "ownnone-0", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	e.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "ownnone", "state": "held", "reason": "MassRemoval"})
	haveCareful("app")
}
