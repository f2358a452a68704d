package kinds

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

// The template of a Rollout that reads nothing.
const podIdle = "{metadata: {labels: {app: x}}, spec: {containers: [{name: app, image: app}]}}"

func TestWishesPaceAndExplanationsHoldForOtherKinds(t *testing.T) {
	e, namespace := newStage(t, "asking")
	e.Secret(namespace, "own", map[string]string{"used": "1"})
	rollouts := e.kind("argoproj.io", "v1alpha1", "Rollout")
	rollouts.install()
	reading := "spec: {template: " + strings.ReplaceAll(podReading, "shared", "own") + "}"
	rollouts.create(namespace, "silent", reading)
	rollouts.create(namespace, "asks", "metadata: {annotations: {"+mark.Reload+": Restart}}\n"+reading)
	rollouts.create(namespace, "lists", "metadata: {annotations: {secret.reloader.stakater.com/reload: own}}\nspec: {template: "+podIdle+"}")
	e.Sections = "reload: {compatibility: [Reloader], minInterval: 1h}\n"
	h := e.Start(lab.ReloadRule("asking"))
	asks, lists := rollouts.adopted(namespace, "asks"), rollouts.adopted(namespace, "lists")
	e.Settled(h)
	before := e.Cluster.Mark()
	e.SetKey(namespace, "own", "used", "2")
	rollouts.stamped(namespace, "asks", asks, "spec", "template")
	rollouts.stamped(namespace, "lists", lists, "spec", "template")
	e.Settled(h)
	require.Len(t, e.writesTo(before, "rollouts"), 2, "nobody asks for the third")

	e.SetKey(namespace, "own", "used", "3")
	require.Contains(t, e.HasEvent(namespace, "asks", "RestartWaits"), "the least time after its last restart")
	e.HasMetric(h, 2, "headwater_reload_waiting", map[string]string{"reason": "interval"})
	require.Len(t, e.writesTo(before, "rollouts"), 2)

	user, file := e.Viewer("asking-viewer"), e.ConfigFile(lab.ReloadRule("asking"))
	shows := func(parts []string, args ...string) {
		t.Helper()
		out, problem, exit := e.Command(user, append(args, "--config", file)...)
		require.Zero(t, exit, problem)
		for _, part := range parts {
			require.Contains(t, out, part)
		}
	}
	shows([]string{"to be restarted, since this changed: Secret/asking-a/own; last restarted"}, "explain", "rollout/asking-a/asks")
	shows([]string{"Rollout.argoproj.io/asking-a/asks", "Rollout.argoproj.io/asking-a/lists", "annotation of Reloader", "Behind"},
		"consumers", "Secret/asking-a/own")
}

// Who owns an App cannot annotate what its operator makes of it.
func TestWhatIsSaidOfAnOwnerHoldsForWhatItControls(t *testing.T) {
	e, namespace := newStage(t, "above")
	apps := e.kind("example.com", "v1", "App")
	apps.install()
	apps.grant()
	e.Sections = "reload: {workloads: [{group: example.com, version: v1, kind: App, template: spec.pod}]}\n"
	with := func(annotation, value string) string {
		return "metadata: {annotations: {" + annotation + ": '" + value + "'}}\nspec: {pod: " + podReading + "}"
	}
	for name, content := range map[string]string{
		"off": with(mark.Reload, "Off"), "keys": with(mark.ReloadKeys, "unused"), "restarted": "spec: {pod: " + podReading + "}",
	} {
		e.controlledDeployment(namespace, name+"-child", apps.create(namespace, name, content))
	}
	h := e.Reloads("above")
	restarted := apps.adopted(namespace, "restarted")
	e.Settled(h)
	before := e.Cluster.Mark()
	e.Change("above", "used", "2")
	apps.stamped(namespace, "restarted", restarted, "spec", "pod")
	e.Settled(h)
	require.Len(t, e.writesTo(before, "apps"), 1, "neither for one that is off, nor for another key")
	require.Empty(t, e.writesTo(before, "deployments"))
}

func TestKindIsDeclaredWhileRunning(t *testing.T) {
	e, namespace := newStage(t, "later")
	apps := e.kind("example.com", "v1", "App")
	apps.install()
	apps.grant()
	owner := apps.create(namespace, "web", "spec: {template: "+podReading+"}")
	e.controlledDeployment(namespace, "child", owner)
	h := e.Reloads("later")
	e.Adopted(h, namespace, "child")
	e.Sections = "reload: {workloads: [{group: example.com, version: v1, kind: App}]}\n"
	file := e.ConfigFile(lab.ReloadRule("later"))
	apps.standing(h, "Full")
	baseline := apps.adopted(namespace, "web")
	e.Settled(h)
	before, stamps := e.Cluster.Mark(), e.Stamps(namespace)
	e.Change("later", "used", "2")
	apps.stamped(namespace, "web", baseline, "spec", "template")
	e.Restarted(namespace, stamps)
	require.Empty(t, e.writesTo(before, "deployments"), "its owner is stamped in its place")

	user := e.Viewer("later-viewer")
	out, problem, exit := e.Command(user, "explain", "deploy/later-a/child", "--config", file)
	require.Zero(t, exit, problem)
	require.Contains(t, out, "what App.example.com consume is not shown", "this one may not read them")
	apps.grantTo(user)
	out, problem, exit = e.Command(user, "explain", "deploy/later-a/child", "--config", file)
	require.Zero(t, exit, problem)
	require.Contains(t, out, "never restarted itself; App.example.com/later-a/web is, in its place")
}
