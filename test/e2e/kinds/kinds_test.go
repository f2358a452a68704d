// Package kinds holds the end-to-end tests of workloads of custom kinds and of
// custom resources that hold a copied value.
package kinds

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// podReading is the content of a pod template that reads key used of Secret
// shared into its environment.
const podReading = `{metadata: {labels: {app: x}}, spec: {containers: [{name: app, image: app, env: [{name: X, valueFrom: {secretKeyRef: {name: shared, key: used}}}]}]}}`

// No Argo controller runs here: what is shown is that the Rollout, of Argo's
// group and kind, gets the stamp on its pod template for which one would roll it.
func TestRolloutsArePickedUpWhenTheirKindIsInstalled(t *testing.T) {
	e, namespace := newStage(t, "rollouts")
	rollouts := e.kind("argoproj.io", "v1alpha1", "Rollout")
	h := e.Reloads("rollouts")
	rollouts.standing(h, "Absent")

	for _, value := range []string{"2", "3"} {
		rollouts.install()
		rollouts.standing(h, "Full")
		rollouts.create(namespace, "web", "spec: {template: "+podReading+"}")
		rollouts.create(namespace, "other", "spec: {template: {spec: {containers: []}}}")
		first := rollouts.adopted(namespace, "web")
		e.Settled(h)
		before := e.Cluster.Mark()
		e.Change("rollouts", "used", value)
		rollouts.stamped(namespace, "web", first, "spec", "template")
		e.Settled(h)
		writes := e.writesTo(before, "rollouts")
		require.Len(t, writes, 1, "one write per change")
		require.Contains(t, writes[0].URI, "fieldManager=headwater")
		rollouts.remove()
		rollouts.standing(h, "Absent")
	}
	began, quiet := time.Now(), e.Cluster.Mark()
	e.Stays(e.NoWrites(quiet))
	asked, took := len(e.asked(quiet, "argoproj.io")), time.Since(began)
	require.LessOrEqual(t, asked, 6*int(1+took/(2*lab.Settle)), "what is not there is not asked for time and again")
}

func TestRolloutThatBorrowsItsTemplateIsRestartedByTheDeployment(t *testing.T) {
	e, namespace := newStage(t, "borrowed")
	rollouts := e.kind("argoproj.io", "v1alpha1", "Rollout")
	rollouts.install()
	e.Deployment(namespace, "base", lab.ByEnv("shared", "used"), nil) // scaled down
	rollouts.create(namespace, "web", "spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: base}}")
	rollouts.create(namespace, "odd", "spec: {workloadRef: {apiVersion: v1, kind: PodTemplate, name: base}}")
	start := e.Cluster.Mark()
	h := e.Reloads("borrowed")
	e.Settled(h)
	before, stamps := e.Cluster.Mark(), e.Stamps(namespace)
	e.Change("borrowed", "used", "2")
	e.Restarted(namespace, stamps, "Deployment/base")
	e.Settled(h)
	require.Len(t, e.writesTo(before, "deployments"), 1, "once")
	require.Contains(t, e.HasEvent(namespace, "odd", "TemplateElsewhere"), "reload.workloads")
	require.Empty(t, e.writesTo(start, "rollouts"), "a Rollout without a pod template must not get half of one")
}

func TestWhatControlsAWorkloadIsStampedInItsPlace(t *testing.T) {
	e, namespace := newStage(t, "declared")
	apps := e.kind("example.com", "v1", "App")
	apps.install()
	apps.grant()
	e.Sections = "reload: {workloads: [{group: example.com, version: v1, kind: App, template: spec.pod}]}\n"
	owner := apps.create(namespace, "whole", "spec: {pod: "+podReading+"}")
	e.controlledDeployment(namespace, "whole-child", owner)
	// What its operator adds to the child counts for the owner, too.
	adding := apps.create(namespace, "adding", "spec: {pod: {spec: {containers: []}}}")
	e.controlledDeployment(namespace, "adding-child", adding)
	bare := apps.create(namespace, "bare", "spec: {replicas: 1}")
	e.controlledDeployment(namespace, "bare-child", bare)

	h := e.Reloads("declared")
	whole, added := apps.adopted(namespace, "whole"), apps.adopted(namespace, "adding")
	e.Settled(h)
	before, stamps := e.Cluster.Mark(), e.Stamps(namespace)
	e.Change("declared", "used", "2")
	apps.stamped(namespace, "whole", whole, "spec", "pod")
	apps.stamped(namespace, "adding", added, "spec", "pod")
	e.Restarted(namespace, stamps, "Deployment/bare-child")
	e.Settled(h)
	require.Len(t, e.writesTo(before, "apps"), 2)
	require.Contains(t, e.HasEvent(namespace, "bare", "NoPodTemplate"), "spec.pod")
	require.Len(t, e.writesTo(before, "deployments"), 1)

	h.Stop()
	again := e.Cluster.Mark()
	e.Settled(e.Start(lab.ReloadRule("declared")))
	require.Empty(t, e.Writes(again), "a restart of Headwater with nothing changed writes nothing")
}

// The test plays the operator: it puts back whatever somebody changes.
func TestOperatorThatTakesTheStampOffIsNotFought(t *testing.T) {
	e, namespace := newStage(t, "reverting")
	widgets := e.kind("example.com", "v1", "Widget")
	widgets.install()
	owner := widgets.create(namespace, "widget", "")
	e.controlledDeployment(namespace, "web", owner)
	stop := e.revert(namespace, "web")
	defer stop()
	h := e.Reloads("reverting")
	e.Settled(h)
	for _, value := range []string{"2", "3"} {
		before := e.Cluster.Mark()
		e.Change("reverting", "used", value)
		e.Eventually(func(context.Context) error {
			if got := len(e.writesTo(before, "deployments")); got != 1 {
				return fmt.Errorf("%d writes, want 1", got)
			}
			return nil
		})
		e.Settled(h)
		require.Len(t, e.writesTo(before, "deployments"), 1, "one try per change")
	}
	note := e.HasEvent(namespace, "web", "RestartReverted")
	require.Contains(t, note, "Widget.example.com/widget")
	require.Contains(t, note, "reload.workloads")
	reverted, err := h.Metric(t.Context(), "headwater_reload_reverted_total", map[string]string{"kind": "Deployment"})
	require.NoError(t, err)
	require.GreaterOrEqual(t, reverted, 2.0)
}

func TestStampThatTheSchemaDropsIsReported(t *testing.T) {
	e, namespace := newStage(t, "dropped")
	apps := e.kind("example.com", "v1", "App")
	apps.installWith(`{type: object, properties: {spec: {type: object, properties: {template: {type: object, properties: {
    metadata: {type: object}, spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}}`)
	apps.grant()
	apps.create(namespace, "app", "spec: {template: "+podReading+"}")
	e.Sections = "reload: {workloads: [{group: example.com, version: v1, kind: App}]}\n"
	h := e.Reloads("dropped")
	apps.adopted(namespace, "app")
	e.Settled(h)
	before := e.Cluster.Mark()
	e.Change("dropped", "used", "2")
	require.Contains(t, e.HasEvent(namespace, "app", "RestartReverted"), "schema")
	e.Settled(h)
	require.Len(t, e.writesTo(before, "apps"), 1)
}

func TestKindThatCannotBeReadHangsNothing(t *testing.T) {
	e, namespace := newStage(t, "unreadable")
	apps := e.kind("example.com", "v1", "App")
	e.Sections = "reload: {workloads: [{group: example.com, version: v1, kind: App}]}\n"

	h := e.Start(lab.ReloadRule("unreadable")) // nobody has granted the kind
	apps.install()
	owner := apps.create(namespace, "app", "spec: {template: "+podReading+"}")
	e.controlledDeployment(namespace, "child", owner)
	apps.standing(h, "Refused")
	require.NoError(t, h.Ready(t.Context()))
	e.Cloned("unreadable", "used", "1")
	e.Settled(h)
	stamps := e.Stamps(namespace)
	e.Change("unreadable", "used", "2")
	e.Restarted(namespace, stamps, "Deployment/child") // as if nobody knew the kind
	e.Settled(h)

	apps.grant()
	apps.standing(h, "Full")
	first := apps.adopted(namespace, "app")
	e.Settled(h)
	stamps = e.Stamps(namespace)
	e.Change("unreadable", "used", "3")
	apps.stamped(namespace, "app", first, "spec", "template")
	e.Restarted(namespace, stamps)
}

// writesTo are Headwater's writes to one resource since mark.
func (e *env) writesTo(mark cluster.Mark, resource string) []cluster.Request {
	e.Helper()
	var found []cluster.Request
	for _, request := range e.Writes(mark) {
		if request.Resource == resource {
			found = append(found, request)
		}
	}
	return found
}

// asked are Headwater's requests about an API group since mark.
func (e *env) asked(mark cluster.Mark, group string) []cluster.Request {
	e.Helper()
	requests, err := e.Cluster.Since(e.Context(), mark, func(r cluster.Request) bool {
		return r.User == lab.ServiceAccount && strings.Contains(r.URI, "/apis/"+group)
	})
	require.NoError(e, err)
	return requests
}

// controlledDeployment makes a Deployment that owner controls, and that reads key
// used of Secret shared.
func (e *env) controlledDeployment(namespace, name string, owner *unstructured.Unstructured) {
	e.Helper()
	deployment := lab.Deployment(namespace, name, 0, lab.ByEnv("shared", "used"))
	deployment.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	e.Create(namespace, deployment)
}

// revert plays an operator that keeps a Deployment as it is now, until stop.
func (e *env) revert(namespace, name string) (stop func()) {
	e.Helper()
	return e.operate(namespace, name, func(changed *appsv1.Deployment) bool {
		reverts := changed.Annotations[mark.Baseline] != "" || isStamped(changed)
		delete(changed.Annotations, mark.Baseline)
		delete(changed.Annotations, mark.RestartedAt)
		return reverts
	})
}

// operate plays an operator that puts the template of a Deployment back as it is now whenever
// reverts is true, which may change more, until stop.
func (e *env) operate(namespace, name string, reverts func(changed *appsv1.Deployment) bool) (stop func()) {
	e.Helper()
	deployments := e.Admin.AppsV1().Deployments(namespace)
	want := lab.Read(e, deployments.Get, name)
	watch, err := deployments.Watch(e.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: want.ResourceVersion})
	require.NoError(e, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			changed, ok := event.Object.(*appsv1.Deployment)
			if !ok || !reverts(changed) {
				continue
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(e.Context()), 10*time.Second)
			changed.Spec.Template = want.Spec.Template
			_, _ = deployments.Update(ctx, changed, metav1.UpdateOptions{FieldManager: "operator"}) // a conflict comes again
			cancel()
		}
	}()
	return func() {
		watch.Stop()
		<-done
	}
}

func isStamped(d *appsv1.Deployment) bool {
	return d.Spec.Template.Annotations[mark.RestartedFor] != ""
}

// newStage is newEnv with the namespaces and the source of lab.ReloadRule.
func newStage(t *testing.T, prefix string) (e *env, namespace string) {
	t.Helper()
	e = newEnv(t)
	return e, e.Stage(prefix)
}

// onNode is newStage with a node for pods.
func onNode(t *testing.T, prefix string) (e *env, namespace string) {
	t.Helper()
	e = newEnv(t)
	e.Node(prefix + "-node")
	return e, e.Stage(prefix)
}
