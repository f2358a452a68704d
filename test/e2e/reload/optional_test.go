package reload

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// byOptional reads all of a Secret into the environment, if it is there.
func byOptional(secret string) corev1.PodSpec {
	spec := lab.ByEnvFrom(secret)
	spec.Containers[0].EnvFrom[0].SecretRef.Optional = new(true)
	return spec
}

// deployed makes a Deployment of one pod.
func (e *env) deployed(namespace, name string, spec corev1.PodSpec, annotations map[string]string) {
	e.Helper()
	d := lab.Deployment(namespace, name, 1, spec)
	d.Annotations = annotations
	e.Create(namespace, d)
}

// bound waits until a pod of the Deployment has a node.
func (e *env) bound(namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		return lab.ErrorIf(err != nil || len(pods.Items) == 0 || pods.Items[0].Spec.NodeName == "", "no pod has a node yet (%w)", err)
	})
}

func TestAnOptionalObjectThatAppearsRestartsThePodsThatStartedWithoutIt(t *testing.T) {
	e := newEnv(t)
	e.Node("optional-node")
	e.Namespace("optional-src")
	namespace := e.Namespace("optional-a")
	waiting := byOptional("shared")
	waiting.NodeSelector = map[string]string{"optional": "none"}
	h := e.Start(pacedRule("optional", "minInterval: 0s"))
	e.deployed(namespace, "by-rule", byOptional("shared"), nil)
	e.deployed(namespace, "by-wish", byOptional("own"), map[string]string{mark.Reload: "Auto"})
	e.deployed(namespace, "by-nobody", byOptional("own"), nil)
	e.deployed(namespace, "not-started", waiting, nil)
	for _, name := range []string{"by-rule", "by-wish", "by-nobody"} {
		e.bound(namespace, name)
	}
	e.Adopted(h, namespace, "by-rule", "by-wish")
	before := e.Stamps(namespace)

	e.Secret("optional-src", "shared", map[string]string{"used": "1"})
	e.Restarted(namespace, before, "Deployment/by-rule")
	e.Secret(namespace, "own", map[string]string{"used": "1"})
	e.Restarted(namespace, before, "Deployment/by-rule", "Deployment/by-wish")

	e.Settled(h)
	before = e.Stamps(namespace)
	require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "own", metav1.DeleteOptions{}))
	e.Secret(namespace, "own", map[string]string{"used": "1"})
	e.Change("optional", "used", "2") // by then the other is back as it was
	e.Cloned("optional", "used", "2")
	e.Restarted(namespace, before, "Deployment/by-rule")
}

// sharedWhereLabelled clones into the namespaces with that label alone.
var sharedWhereLabelled = lab.Rule("back", "sync: {namespaces: {selector: {matchLabels: {back: wanted}}}}", "reload: {debounce: 0s, minInterval: 0s}")

// What is on record, the data of before, says nothing about pods that came since.
func TestAnOptionalObjectThatIsBackRestartsThePodsThatCameWhileItWasGone(t *testing.T) {
	e := newEnv(t)
	e.Node("back-node")
	e.Secret(e.Namespace("back-src"), "shared", map[string]string{"used": "1"})
	namespace := e.Namespace("back-a", "back=wanted")
	e.Secret(namespace, "own", map[string]string{"used": "1"})
	h := e.Start(sharedWhereLabelled)
	e.Cloned("back", "used", "1")
	wish := map[string]string{mark.Reload: "Auto"}
	e.deployed(namespace, "by-rule", byOptional("shared"), nil)
	e.deployed(namespace, "by-wish", byOptional("own"), wish)
	e.deployed(namespace, "older", byOptional("own"), wish)
	for _, name := range []string{"by-rule", "by-wish", "older"} {
		e.bound(namespace, name)
	}
	before := e.Adopted(h, namespace, "by-rule", "by-wish", "older")

	e.labelled(namespace, `null`)
	e.HasNone(namespace, "shared")
	require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "own", metav1.DeleteOptions{}))
	e.Settled(h) // it has seen that both are gone
	for _, name := range []string{"by-rule", "by-wish"} {
		e.patched(namespace, name, newImage)
		e.newPodBound(namespace, name)
	}
	e.Settled(h)

	e.Secret(namespace, "own", map[string]string{"used": "1"})
	e.labelled(namespace, `"wanted"`)
	e.Cloned("back", "used", "1")
	e.Restarted(namespace, before, "Deployment/by-rule", "Deployment/by-wish")
}

func (e *env) labelled(namespace, value string) {
	e.Helper()
	patch := []byte(`{"metadata": {"labels": {"back": ` + value + `}}}`)
	_, err := e.Admin.CoreV1().Namespaces().Patch(e.Context(), namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(e, err)
}

// What pods need decides when they start: by then the rest may be there, too.
func TestAnOptionalObjectThatIsThereBeforePodsCanStartRestartsNothing(t *testing.T) {
	e := newEnv(t)
	e.Node("together-node")
	e.Namespace("together-src")
	namespace := e.Namespace("together-a")
	both := byOptional("own")
	both.Containers[0].Env = lab.ByEnv("shared", "used").Containers[0].Env
	h := e.Start(lab.ReloadRule("together"))
	e.deployed(namespace, "both", both, map[string]string{mark.Reload: "Auto"})
	e.bound(namespace, "both")
	e.Settled(h)
	before := e.Stamps(namespace)

	e.Secret(namespace, "own", map[string]string{"used": "1"})
	e.Settled(h) // it has seen that
	e.Secret("together-src", "shared", map[string]string{"used": "1"})
	e.Adopted(h, namespace, "both")
	e.Restarted(namespace, before)
}
