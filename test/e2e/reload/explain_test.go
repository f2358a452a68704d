package reload

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/mark"
	reloaddecide "github.com/headwater-k8s/headwater/reload/decide"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// uses are the standings and outcomes of an explanation, by object.
func (e *env) uses(user, consumer string) (step reloadspec.Step, uses map[string]string) {
	e.Helper()
	var explained inspect.Explanation
	e.Answers(user, &explained, "explain", consumer, "--config", e.ConfigFile(lab.ReloadRule("explain")))
	uses = map[string]string{}
	for _, use := range explained.Uses {
		by := string(use.OptIn)
		if use.Rule != "" {
			by = "rule"
		}
		uses[use.Object] = strings.Join([]string{by, string(use.OnChange), string(use.Reason), string(use.Status)}, " ")
	}
	return explained.Step, uses
}

func TestExplainSaysWhatAChangeWouldDoAndWhy(t *testing.T) {
	e := newEnv(t)
	e.Sections = lab.Unpaced
	e.Node("explain-node")
	namespace := e.Stage("explain")
	e.Secret(namespace, "own", map[string]string{"k": "s3cret"})
	podSpec := lab.ByEnv("shared", "used")
	podSpec.Containers[0].EnvFrom = append(podSpec.Containers[0].EnvFrom, lab.ByEnvFrom("own").Containers[0].EnvFrom...)
	e.Deployment(namespace, "silent", podSpec, nil)
	e.Deployment(namespace, "asks", podSpec, map[string]string{mark.Reload: "Auto"})
	e.Deployment(namespace, "off", podSpec, map[string]string{mark.Reload: "Off"})
	e.Deployment(namespace, "garbled", podSpec, map[string]string{mark.Reload: "always"})
	e.Deployment(namespace, "idle", lab.ByNothing(), nil)
	mounting := lab.ByVolume("shared")
	mounting.NodeName = "explain-node"
	e.Create(namespace, lab.Deployment(namespace, "mounts", 1, mounting))
	pod := e.RunningPod(namespace, "mounts")
	h := e.Reloads("explain")
	e.Adopted(h, namespace, "silent", "asks")
	user, mark := e.Viewer("explain-viewer"), e.Cluster.Mark()

	shared, own := "Secret/"+namespace+"/shared", "Secret/"+namespace+"/own"
	for consumer, want := range map[string]map[string]string{
		"Deployment/explain-a/silent": {shared: "rule Restart ReadAtStart Current", own: " Nothing Ungoverned Untracked"},
		"deploy/explain-a/asks":       {shared: "rule Restart ReadAtStart Current", own: "Headwater Restart ReadAtStart Current"},
		"deployments/explain-a/off":   {shared: "rule Nothing Off Untracked", own: " Nothing Off Untracked"},
		"Deployment/explain-a/mounts": {shared: "rule Refresh Mounted Current"},
		"pod/explain-a/" + pod:        {shared: "rule Refresh Mounted Current"},
		"Deployment/explain-a/idle":   {},
	} {
		step, uses := e.uses(user, consumer)
		require.Equal(t, reloadspec.StepNothing, step, consumer)
		require.Equal(t, want, uses, consumer)
	}

	h.Stop()
	e.SetKey(namespace, "own", "k", "s3cret2")
	step, uses := e.uses(user, "Deployment/explain-a/asks")
	require.Equal(t, reloadspec.StepRestart, step)
	require.Equal(t, "Headwater Restart ReadAtStart Behind", uses[own])
	var consumers inspect.Consumers
	e.Answers(user, &consumers, "consumers", "Secret/explain-a/own", "--config", e.ConfigFile(lab.ReloadRule("explain")))
	standings := map[string]reloaddecide.Status{}
	for _, use := range consumers.Consumers {
		standings[use.Consumer] = use.Status
	}
	require.Equal(t, map[string]reloaddecide.Status{
		"Deployment/explain-a/asks": reloaddecide.Behind, "Deployment/explain-a/silent": reloaddecide.Untracked,
		"Deployment/explain-a/off": reloaddecide.Untracked, "Deployment/explain-a/garbled": reloaddecide.Untracked,
	}, standings)

	requests, err := e.Cluster.Since(t.Context(), mark, func(r cluster.Request) bool {
		return r.User == user && r.IsWrite() && !strings.HasSuffix(r.Resource, "reviews")
	})
	require.NoError(t, err)
	require.Empty(t, requests, "read access is all it takes")
	e.explainedInWords(user, namespace)
}

func (e *env) explainedInWords(user, namespace string) {
	e.Helper()
	file := e.ConfigFile(lab.ReloadRule("explain"))
	shows := func(exit int, parts []string, args ...string) {
		e.Helper()
		out, problem, code := e.Command(user, append(args, "--config", file)...)
		require.Equal(e, exit, code, problem)
		for _, part := range parts {
			require.Contains(e, out+problem, part)
		}
		require.NotContains(e, out+problem, "s3cret")
	}
	shows(0, []string{
		"Deployment/explain-a/asks: to be restarted, since this changed: Secret/explain-a/own", "annotation", "rule explain",
		"Env used", "read when containers start, and never again",
	}, "explain", "deploy/explain-a/asks")
	shows(0, []string{"ignored: headwater.dev/reload: \"always\" is not Auto"}, "explain", "deploy/explain-a/garbled")
	shows(0, []string{"mounts", "Refresh", "Current (1 of 1 pods)"}, "consumers", "secret/explain-a/shared")
	shows(0, []string{"Deployment/explain-a/asks", "Secret/explain-a/shared"}, "consumers", "secret/explain-src/shared")
	shows(0, []string{"Deployment/explain-a/off: "}, "explain", "explain-a/deploy/off")
	shows(0, []string{"Secret/explain-a/none: nobody consumes it", "note: there is no such Secret"}, "consumers", "secrets/explain-a/none")
	out, _, _ := e.Command(user, "consumers", "secret/explain-a/shared", "--config", file)
	require.NotContains(e, out, "no such")
	shows(0, []string{"standing: Unknown", "whether workloads run the current data is not shown"},
		"explain", "deploy/explain-a/asks", "-o", "yaml", "--headwater-namespace", namespace)
	shows(1, []string{"Deployment/explain-a/none does not exist"}, "explain", "deploy/explain-a/none")
	shows(1, []string{`kind "explain-a" is none of`}, "explain", "explain-a/asks")
	shows(0, []string{"Deployment/explain-a/off: "}, "explain", "deploy/off", "-n", "explain-a")
	shows(0, []string{"Deployment/explain-a/asks"}, "consumers", "secret", "own", "--namespace", "explain-a")
	shows(1, []string{`is in namespace explain-a, but --namespace is other`}, "explain", "deploy/explain-a/off", "-n", "other")
	shows(1, []string{`kind "job" is none of`}, "explain", "job/explain-a/asks")
	shows(1, []string{`kind "pod" is neither Secret nor ConfigMap`}, "consumers", "pod/explain-a/own")
}
