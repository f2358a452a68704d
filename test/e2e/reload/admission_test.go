package reload

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestWhatAdmissionTakesOffConsumersIsReportedAndHealedOnceItStops(t *testing.T) {
	e, pods := onNode(t, "robbed")
	templates := e.Stage("shorn")
	e.serving(templates, "web", 1, lab.ByEnv("shared", "used"))
	h := e.StartAlone(lab.ReloadRule("robbed") + lab.ReloadRule("shorn"))
	e.Cloned("robbed", "used", "1")
	e.Adopted(h, templates, "web")
	e.mounting(pods, "mounts", "robbed-node", "127.0.0.1")
	e.Settled(h)
	refreshed := e.Refreshes(pods)["mounts"]

	regrown := e.Mutate(templates, lab.Mutation{
		Resource: "deployments", Operations: "UPDATE", Condition: `"headwater.dev/restarted-for" in object.spec.template.metadata.?annotations.orValue({})`,
		Patch: `JSONPatch{op: "remove", path: "/spec/template/metadata/annotations/headwater.dev~1restarted-for"}`,
	})
	stop := e.Mutate(pods, lab.Mutation{
		Resource: "pods", Operations: "UPDATE", Condition: `"headwater.dev/refreshed-for" in object.metadata.?annotations.orValue({})`,
		Patch: `JSONPatch{op: "remove", path: "/metadata/annotations/headwater.dev~1refreshed-for"}`,
	})
	tried := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	kept := func(ctx context.Context, want bool) error {
		pod, err := e.Admin.CoreV1().Pods(pods).Patch(ctx, "mounts", types.MergePatchType, []byte(`{"metadata":{"annotations":{"headwater.dev/refreshed-for":"x"}}}`), tried)
		if err != nil {
			return err
		}
		web, err := e.Admin.AppsV1().Deployments(templates).Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"annotations":{"headwater.dev/restarted-for":"x"}}}}}`), tried)
		if err != nil {
			return err
		}
		are := []bool{pod.Annotations["headwater.dev/refreshed-for"] != "", web.Spec.Template.Annotations["headwater.dev/restarted-for"] != ""}
		return lab.ErrorIf(slices.Contains(are, !want), "kept of pod and template: %v", are)
	}
	e.Eventually(func(ctx context.Context) error { return kept(ctx, false) })
	// A write of the status would hide that the template is as it was when Headwater had written
	// it, and would have it written again while the rest of the stamp is not taken off.
	resume, err := e.Cluster.PauseControllers()
	require.NoError(t, err)
	t.Cleanup(func() { _ = resume() })
	mark, began := e.Cluster.Mark(), time.Now()
	e.Change("robbed", "used", "2")
	e.Change("shorn", "used", "2")
	e.HasNote(pods, "mounts", "AdmissionChanges", "the API server stores annotation headwater.dev/refreshed-for otherwise than Headwater writes it")
	e.HasNote(templates, "web", "AdmissionChanges", "the API server stores annotation headwater.dev/restarted-for otherwise than Headwater writes it")
	patches, err := e.Cluster.Since(t.Context(), mark, func(r cluster.Request) bool {
		return r.User == lab.ServiceAccount && r.Verb == "patch" && (r.Namespace == pods || r.Namespace == templates)
	})
	require.NoError(t, err)
	require.Less(t, len(patches), 30+2*int(time.Since(began)/time.Second), "each retry waits longer")

	stop()
	regrown()
	e.Eventually(func(ctx context.Context) error { return kept(ctx, true) })
	require.NoError(t, resume())
	e.Refreshed(pods, "mounts", refreshed)
	e.Eventually(func(context.Context) error {
		return lab.ErrorIf(e.Stamps(templates)["Deployment/web"] == "", "not restarted")
	})
}
