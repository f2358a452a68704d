package status

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/internal/rulestatus/keeper"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestTheStatusOfARemovedRuleStaysWhileItsClonesAreRetained(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("gone-src", "gone-a", "gone-b")
	e.Secret("gone-src", "shared", map[string]string{"k": "v"})
	e.StartAlone(lab.OneRule("gone"))
	before := e.becomes("gone", ready("Ready"))

	e.ConfigFile("\n- {name: elsewhere, source: {kind: Secret, namespace: gone-src, name: another}, sync: {namespaces: {include: [nowhere]}}}\n")
	removed := e.becomes("gone", ready("RuleRemoved"))
	require.Equal(t, before.UID, removed.UID)
	require.True(t, removed.Status.Removed)
	require.Equal(t, map[string]int{"retained": 2}, removed.Status.Clones.ByState)
	require.Contains(t, removed.Status.Condition(rulestatus.Ready).Message, "the configuration no longer has the rule; 2 clones retained")
	e.waitFor(e.Dynamic(), "gone", status.CurrentStatus)

	require.NoError(t, e.Admin.CoreV1().Secrets("gone-a").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	left := e.becomes("gone", func(s rulestatus.Status) bool { return s.Clones.ByState["retained"] == 1 })
	require.Contains(t, left.Status.Condition(rulestatus.Ready).Message, "1 clone retained")

	require.NoError(t, e.Admin.CoreV1().Secrets("gone-b").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error {
		_, err := e.client.Get(ctx, "gone", metav1.GetOptions{})
		return lab.Gone(err)
	})
}

// A GitOps tool creates a RuleStatus without a status, to wait for the rule.
func TestAStatusIsKeptWhereNothingIsReloaded(t *testing.T) {
	e := newEnv(t)
	e.Sections = "reload: {optIn: false}\n"
	e.StageOf("still", map[string]string{"k": "v"})
	e.StartAlone(lab.OneRule("still"))
	before := e.becomes("still", ready("Ready")).Status.Clones.Current
	e.Namespace("still-z")
	e.becomes("still", func(s rulestatus.Status) bool { return s.Clones.Current == before+1 })
}

func TestAStatusMayBeAppliedBeforeItsRuleIsInForce(t *testing.T) {
	e := newEnv(t)
	e.StageOf("early", map[string]string{"k": "v"})
	const other = "\n- {name: other, source: {kind: Secret, namespace: early-src, name: shared}, protect: {}}\n"
	e.StartAlone(other)
	e.becomes("other", ready("Ready"))

	applied := &unstructured.Unstructured{Object: map[string]any{}}
	applied.SetGroupVersionKind(rulestatus.GVR.GroupVersion().WithKind(rulestatus.Kind))
	applied.SetName("early")
	applied.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "platform"})
	applied, err := e.client.Create(t.Context(), applied, metav1.CreateOptions{})
	require.NoError(t, err)
	e.Holds(2*keeper.Interval, func(ctx context.Context) error {
		found, err := e.client.Get(ctx, "early", metav1.GetOptions{})
		if err == nil && found.GetResourceVersion() != applied.GetResourceVersion() {
			return fmt.Errorf("written: %v", found.Object)
		}
		return err
	})

	e.ConfigFile(other + lab.OneRule("early"))
	written := e.becomes("early", ready("Ready"))
	require.Equal(t, applied.GetUID(), written.UID)
	require.Equal(t, applied.GetAnnotations(), written.Annotations)
	require.Equal(t, 1, written.Status.Clones.Current)
}
