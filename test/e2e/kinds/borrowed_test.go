package kinds

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// borrower makes a Deployment that is scaled down, and a Rollout of its name
// that runs its pod template.
func (k kind) borrower(namespace, name string, replicas int64) {
	k.Helper()
	k.Deployment(namespace, name, lab.ByEnv("shared", "used"), nil)
	k.create(namespace, name, fmt.Sprintf("spec: {replicas: %d, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: %s}}", replicas, name))
	k.borrowed(namespace, name, replicas)
}

// borrowed plays the controller of the kind, which has replaced all pods with
// those of the Deployment's template.
func (k kind) borrowed(namespace, name string, replicas int64) {
	k.Helper()
	rollout, err := k.object(k.Context(), namespace, name)
	require.NoError(k, err)
	k.says(namespace, name, rollout.GetGeneration(), replicas, replicas)
	k.merge(namespace, name, fmt.Sprintf("status: {workloadObservedGeneration: '%d'}", k.base(namespace, name).Generation), "status")
}

// base is the Deployment of that name.
func (k kind) base(namespace, name string) *appsv1.Deployment {
	k.Helper()
	deployment := lab.Read(k, k.Admin.AppsV1().Deployments(namespace).Get, name)
	return deployment
}

func TestRolloutsThatBorrowTheirTemplatesTakeTurns(t *testing.T) {
	e, namespace := newStage(t, "turns")
	rollouts := e.kind("argoproj.io", "v1alpha1", "Rollout")
	rollouts.install()
	rollouts.borrower(namespace, "web", 2)
	rollouts.borrower(namespace, "api", 2)
	e.Sections = "reload: {maxConcurrentRollouts: 1}\n"
	h := e.Reloads("turns")
	stamps := e.Adopted(h, namespace, "web", "api")
	rollouts.borrowed(namespace, "web", 2) // to the API server a baseline makes another generation
	rollouts.borrowed(namespace, "api", 2)

	e.Change("turns", "used", "2")
	e.Waits(h, 1, "rollouts")
	first, second := "web", "api"
	e.Eventually(func(context.Context) error {
		now := e.Stamps(namespace)
		if now["Deployment/"+first] == "" {
			first, second = second, first
		}
		return lab.ErrorIf(now["Deployment/"+first] == "", "none was restarted")
	})
	e.Restarted(namespace, stamps, "Deployment/"+first)
	rollouts.borrowed(namespace, first, 2)
	e.Restarted(namespace, stamps, "Deployment/"+first, "Deployment/"+second)
	e.Waits(h, 0, "rollouts")
}

func TestANewVersionOfABorrowedTemplateWithItsConfigurationIsRolledOutOnce(t *testing.T) {
	e := newEnv(t)
	e.Node("borrowed-node")
	namespace := e.Stage("once")
	rollouts := e.kind("argoproj.io", "v1alpha1", "Rollout")
	rollouts.install()
	rollouts.borrower(namespace, "web", 2)
	rollouts.pods(namespace, "web", "one", 2)
	h := e.Reloads("once")
	stamps := e.Adopted(h, namespace, "web")
	rollouts.borrowed(namespace, "web", 2)
	adopted := rollouts.base(namespace, "web").Annotations[mark.Baseline]

	_, err := e.Admin.AppsV1().Deployments(namespace).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"labels":{"version":"2"}}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	e.Settled(h) // it has seen that
	e.Change("once", "used", "2")
	e.Waits(h, 1, "owner")
	e.SecondLater()
	rollouts.pods(namespace, "web", "two", 2)
	rollouts.withoutPods(namespace, "web", "one")
	e.Settled(h) // it has seen these pods: a controller says that a rollout is over long after
	rollouts.borrowed(namespace, "web", 2)
	e.Waits(h, 0, "owner")
	e.Eventually(func(context.Context) error {
		return lab.ErrorIf(rollouts.base(namespace, "web").Annotations[mark.Baseline] == adopted, "the baseline is as before")
	})
	e.Restarted(namespace, stamps)
}
