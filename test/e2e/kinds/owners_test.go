package kinds

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// knative are the kinds above a Deployment of Knative. Nothing reconciles them.
type knative struct{ services, configurations, revisions kind }

func (e *env) knative() knative {
	e.Helper()
	k := knative{
		e.kind("serving.knative.dev", "v1", "Service"), e.kind("serving.knative.dev", "v1", "Configuration"), e.kind("serving.knative.dev", "v1", "Revision"),
	}
	for _, one := range []kind{k.services, k.configurations, k.revisions} {
		one.install()
	}
	k.services.grant()
	e.Sections = "reload: {workloads: [{group: serving.knative.dev, version: v1, kind: Service}]}\n"
	return k
}

// grantReads lets user list and watch the kind, and no more.
func (k kind) grantReads(user string) {
	k.Helper()
	name := user + "-reads-" + k.Resource
	k.ClusterRole(name, rbacv1.PolicyRule{APIGroups: []string{k.Group}, Resources: []string{k.Resource}, Verbs: []string{"list", "watch"}})
	k.Grant("", name, user)
}

// controlledBy creates an object that owner controls.
func (k kind) controlledBy(namespace, name, content string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	k.Helper()
	object := k.create(namespace, name, content)
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	updated, err := k.Dynamic().Resource(k.GroupVersionResource).Namespace(namespace).Update(k.Context(), object, metav1.UpdateOptions{})
	require.NoError(k, err)
	return updated
}

// service creates a Service, its Configuration, two Revisions, and when these are known a
// Deployment of each.
func (k knative) service(namespace, name string, known func()) {
	k.services.Helper()
	template := "spec: {template: " + podReading + "}"
	service := k.services.create(namespace, name, template)
	configuration := k.configurations.controlledBy(namespace, name, template, service)
	var revisions []*unstructured.Unstructured
	for i := range 2 {
		revisions = append(revisions, k.revisions.controlledBy(namespace, fmt.Sprintf("%s-0000%d", name, i), "spec: {containers: []}", configuration))
	}
	known()
	for _, above := range revisions {
		k.services.controlledDeployment(namespace, above.GetName()+"-deployment", above)
	}
}

func TestTheTopmostDeclaredOwnerIsRestartedAloneHoweverManyAreBetween(t *testing.T) {
	e, namespace := newStage(t, "levels")
	k := e.knative()
	for _, user := range []string{lab.ServiceAccount, e.Viewer("levels-viewer")} {
		k.configurations.grantReads(user)
		k.revisions.grantReads(user)
	}
	k.services.grantTo("levels-viewer")
	k.service(namespace, "web", func() {})
	h := e.Reloads("levels")
	baseline := k.services.adopted(namespace, "web")
	e.Settled(h)
	before, stamps := e.Cluster.Mark(), e.Stamps(namespace)
	e.Change("levels", "used", "2")
	k.services.stamped(namespace, "web", baseline, "spec", "template")
	k.service(namespace, "later", func() { e.Settled(h) }) // a Deployment without a known owner is its own
	later := k.services.adopted(namespace, "later")
	e.Settled(h)
	e.Restarted(namespace, stamps)
	for resource, want := range map[string]int{"services": 2, "configurations": 0, "revisions": 0, "deployments": 0} {
		require.Len(t, e.writesTo(before, resource), want, resource)
	}
	out, problem, exit := e.Command("levels-viewer", "explain", "deploy/"+namespace+"/web-00000-deployment", "--config", e.ConfigFile(lab.ReloadRule("levels")))
	require.Zero(t, exit, problem)
	require.Contains(t, out, "never restarted itself; Service.serving.knative.dev/"+namespace+"/web is, in its place")

	h.Stop()
	again := e.Cluster.Mark()
	h = e.Start(lab.ReloadRule("levels"))
	e.Settled(h)
	require.Empty(t, e.Writes(again), "a restart of Headwater with nothing changed writes nothing")
	e.Change("levels", "used", "3")
	k.services.stamped(namespace, "later", later, "spec", "template")
	e.Settled(h)
	require.Empty(t, e.writesTo(again, "deployments"))
}

// A revision of Knative that Headwater may not read hides the Service above it.
func TestARevertedRestartIsToldWithTheKindToDeclareAndWaits(t *testing.T) {
	e, namespace := onNode(t, "putback")
	k := e.knative()
	k.service(namespace, "web", func() {})
	const name = "web-00000-deployment"
	e.scale(namespace, name, 1)
	// The restart's own pods do not become ready, so that the old one still runs old data when the
	// operator has undone the restart, however late.
	e.PlayKubelet("spec.nodeName=putback-node", func(_ context.Context, pod *corev1.Pod) (lab.Health, error) {
		if pod.Annotations[mark.RestartedFor] != "" {
			return lab.Waits, nil
		}
		return lab.Runs, nil
	})
	h := e.Reloads("putback")
	e.Adopted(h, namespace, name)
	e.available(namespace, name)
	e.Cleanup(e.operate(namespace, name, isStamped))
	before := e.Cluster.Mark()
	e.Change("putback", "used", "2")
	note := e.HasEvent(namespace, name, "RestartReverted")
	require.Contains(t, note, "its owner Revision.serving.knative.dev/web-00000")
	require.Contains(t, note, "list and watch Revision.serving.knative.dev")
	require.Contains(t, note, "again when the data changes next")
	e.Waits(h, 1, "reverted")
	e.Settled(h)
	require.Len(t, e.writesTo(before, "deployments"), 2, "one for each Deployment")
	viewer := e.Viewer("putback-viewer")
	explained := func() string {
		out, problem, exit := e.Command(viewer, "explain", "deploy/"+namespace+"/"+name, "--config", e.ConfigFile(lab.ReloadRule("putback")))
		require.Zero(t, exit, problem)
		return out
	}
	require.Contains(t, explained(), "controlled by Revision.serving.knative.dev/web-00000, of a kind that you may not list and watch")
	require.Contains(t, explained(), "reverted: the annotations of its restart were removed, most likely by its owner Revision.serving.knative.dev/web-00000")

	h.Stop()
	again := e.Cluster.Mark()
	h = e.Start(lab.ReloadRule("putback"))
	e.Waits(h, 1, "reverted")
	e.Settled(h)
	require.Empty(t, e.Writes(again), "the next leader knows it, too")

	e.newImage(namespace, name) // the operator's own rollout brings the data
	e.Waits(h, 0, "reverted")
	e.Settled(h)
	require.NotContains(t, explained(), "reverted")
}

func (e *env) scale(namespace, name string, replicas int32) {
	e.Helper()
	deployments := e.Admin.AppsV1().Deployments(namespace)
	scale, err := deployments.GetScale(e.Context(), name, metav1.GetOptions{})
	require.NoError(e, err)
	scale.Spec.Replicas, scale.ResourceVersion = replicas, "" // the controller manager writes, too
	_, err = deployments.UpdateScale(e.Context(), name, scale, metav1.UpdateOptions{})
	require.NoError(e, err)
}

// available waits until every replica of a Deployment is available.
func (e *env) available(namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		is, err := e.Admin.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return lab.ErrorIf(is.Status.AvailableReplicas < *is.Spec.Replicas, "%s is not available", name)
	})
}

// newImage changes the pod template of a Deployment, as its operator would.
func (e *env) newImage(namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		is, err := e.Admin.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		is.Spec.Template.Spec.Containers[0].Image = "app:2"
		_, err = e.Admin.AppsV1().Deployments(namespace).Update(ctx, is, metav1.UpdateOptions{FieldManager: "operator"})
		return err
	})
}

// The operator of such a kind, as Prometheus', makes a StatefulSet of it.
func TestAKindMaySayWhereTheAnnotationsOfItsPodsAre(t *testing.T) {
	e, namespace := newStage(t, "podmeta")
	proms := e.kind("monitoring.example.com", "v1", "Prometheus")
	proms.install()
	proms.grant()
	e.Sections = "reload: {workloads: [{group: monitoring.example.com, version: v1, kind: Prometheus, annotations: spec.podMetadata.annotations}]}\n"
	for name, content := range map[string]string{"bare": "spec: {replicas: 1}", "own": "spec: {podMetadata: {annotations: {team: a}}}"} {
		owner := proms.create(namespace, name, content)
		set := lab.StatefulSet(namespace, name, 0, lab.ByEnv("shared", "used"))
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
		e.Create(namespace, set)
	}
	h := e.Reloads("podmeta")
	for _, name := range []string{"bare", "own"} {
		proms.adopted(namespace, name)
	}
	e.Settled(h)
	before := e.Cluster.Mark()
	e.Change("podmeta", "used", "2")
	for name, others := range map[string]int{"bare": 0, "own": 1} {
		e.Eventually(func(ctx context.Context) error {
			object, err := proms.object(ctx, namespace, name)
			if err != nil {
				return err
			}
			annotations, _, err := unstructured.NestedStringMap(object.Object, "spec", "podMetadata", "annotations")
			stamped := annotations[mark.RestartedFor] == object.GetAnnotations()[mark.Baseline] && len(annotations) == 1+others
			return errors.Join(err, lab.ErrorIf(!stamped, "%s has %v", name, annotations))
		})
	}
	e.Settled(h)
	require.Len(t, e.writesTo(before, "prometheuss"), 2)
	require.Empty(t, e.writesTo(before, "statefulsets"))
}
