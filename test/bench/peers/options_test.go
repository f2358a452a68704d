package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/test/figures"
)

func TestNothingButThisMachineIsLoadedUnlessItIsNamed(t *testing.T) {
	for sentence, tc := range map[string]struct {
		host, yes string
		may       bool
	}{
		"a loopback address":                     {"https://127.0.0.1:6443", "", true},
		"another one, of IPv6":                   {"https://[::1]:6443", "", true},
		"localhost":                              {"localhost:6443", "", true},
		"an address of a network":                {"https://10.0.0.1:6443", "", false},
		"a host":                                 {"https://prod.example.com", "", false},
		"one that only looks like it":            {"https://127.0.0.1.example.com", "", false},
		"a host that is named by its context":    {"https://prod.example.com", "prod", true},
		"a host whose context is another":        {"https://prod.example.com", "test", false},
		"this machine, when another was meant":   {"https://127.0.0.1:6443", "test", false},
		"what is no address":                     {"://", "", false},
		"a host that is named localhost in part": {"https://localhost.example.com", "", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := mayLoad(tc.host, "prod", tc.yes)
			require.Equal(t, tc.may, err == nil, "%v", err)
		})
	}
	require.Error(t, mayLoad("https://prod.example.com", "", ""), "a context without a name is not named")
}

func TestWritesStayWithinWhatWasMade(t *testing.T) {
	made := newNamespaces("run")
	made.names["bench-peers-t-1"] = true
	for path, within := range map[string]bool{
		"/api/v1/namespaces":                                           true,
		"/api/v1/namespaces/bench-peers-t-1":                           true,
		"/api/v1/namespaces/bench-peers-t-1/secrets":                   true,
		"/apis/apps/v1/namespaces/bench-peers-t-1/deployments/a":       true,
		"/api/v1/namespaces/kube-system":                               false,
		"/api/v1/namespaces/bench-peers-t-10/secrets/a":                false,
		"/api/v1/nodes/a":                                              false,
		"/apis/rbac.authorization.k8s.io/v1/clusterroles":              false,
		"/apis/admissionregistration.k8s.io/v1/mutatingwebhooks/a":     false,
		"/apis/x/v1/namespaces/kube-system/namespaces/bench-peers-t-1": false,
	} {
		require.Equal(t, within, made.within("POST", path), path)
	}
	require.False(t, made.within("DELETE", "/api/v1/namespaces"), "all of them")
}

func TestAControllerIsToldByItsPreset(t *testing.T) {
	for name, preset := range presets() {
		require.NotEmpty(t, preset.does, name)
		require.Contains(t, preset.install, "helm ", name)
		require.True(t, preset.setup != "" || len(preset.source)+len(preset.workload) > 0, "%s knows of nothing to do", name)
	}
	o := options{name: "replicator", prefix: "mine", source: marks{"also": "PREFIX"}}
	require.NoError(t, o.choose())
	require.Equal(t, marks{"replicator.v1.mittwald.de/replicate-to": "mine-t-.*", "also": "mine"}, o.preset.source)
	require.True(t, o.wants(clones))
	require.False(t, o.wants(templates), "it does not")
	require.Contains(t, o.explain(), "mine-t-.*")
	require.Contains(t, o.explain(), "#   helm upgrade --install kubernetes-replicator mittwald/kubernetes-replicator\n")
	o = options{name: "flux"}
	require.ErrorContains(t, o.choose(), "reflector")
	o = options{prefix: "mine"}
	require.NoError(t, o.choose())
	require.True(t, o.wants(clones) && o.wants(templates))
	require.False(t, o.wants(pods), "without a node")
}

// The README names the presets without figures.
func TestEveryPresetHasFiguresOrTheReadmeSaysNot(t *testing.T) {
	file, err := figures.Read("../../..")
	require.NoError(t, err)
	manual, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, without, found := strings.Cut(string(manual), "No figures of: ")
	require.True(t, found)
	without, _, _ = strings.Cut(without, ".")
	for name := range presets() {
		measured := false
		for run := range file.Runs {
			measured = measured || strings.HasPrefix(run, figures.OfPeers+name+"/")
		}
		require.NotEqual(t, measured, strings.Contains(without, "`"+name+"`"), name)
	}
}

func TestHeadwaterTakesWhatItsPresetSays(t *testing.T) {
	o := options{name: "headwater", prefix: "mine"}
	require.NoError(t, o.choose())
	parsed, err := config.Parse("preset", []byte(o.preset.setup))
	require.NoError(t, err)
	require.NotNil(t, parsed)
}

func TestOptionsSayWhatIsWrong(t *testing.T) {
	good := options{kubeconfig: "k", clones: 1, rounds: 1, samples: 1, within: time.Second, prefix: "p"}
	require.NoError(t, good.check())
	for says, change := range map[string]func(*options){
		"-kubeconfig": func(o *options) { o.kubeconfig = "" },
		"-rounds":     func(o *options) { o.rounds = 0 },
		"-within":     func(o *options) { o.within = 0 },
		"-prefix":     func(o *options) { o.prefix = "Not/OK" },
		"-only":       func(o *options) { o.only = "everything" },
		"-for":        func(o *options) { o.figures = "." },
		"-version":    func(o *options) { o.figures, o.name = ".", "wave" },
	} {
		bad := good
		change(&bad)
		require.ErrorContains(t, bad.check(), says)
	}
	good.figures, good.name = ".", "headwater"
	require.NoError(t, good.check(), "its version is the commit")
	var m marks
	require.Error(t, m.Set("no value"))
	require.NoError(t, m.Set("a=b=c"))
	require.Equal(t, marks{"a": "b=c"}, m)
}
