package kube

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigOf writes a file with a cluster and a context of each name.
func kubeconfigOf(t *testing.T, current string, names ...string) (file string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.CurrentContext = current
	for _, name := range names {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + name + ".example"}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	}
	file = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

func TestAContextOfTheKubeconfigIsChosen(t *testing.T) {
	file := kubeconfigOf(t, "one", "one", "two")
	for context, host := range map[string]string{"": "https://one.example", "two": "https://two.example"} {
		config, err := Kubeconfig{File: file, Context: context}.rest()
		require.NoError(t, err)
		require.Equal(t, host, config.Host)
	}
	t.Setenv("KUBECONFIG", file)
	config, err := Kubeconfig{Context: "two"}.rest()
	require.NoError(t, err)
	require.Equal(t, "https://two.example", config.Host)
}

func TestAKubeconfigThatLeadsNowhereIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	garbled := filepath.Join(t.TempDir(), "garbled")
	require.NoError(t, os.WriteFile(garbled, []byte("clusters: 1\n"), 0o600))
	current, two := kubeconfigOf(t, "gone", "two", "one"), kubeconfigOf(t, "", "two", "one")
	empty := kubeconfigOf(t, "")
	const advice = ": no cluster to talk to: pass --kubeconfig FILE, set KUBECONFIG, or run inside a cluster"
	for sentence, test := range map[string]struct {
		kubeconfig  Kubeconfig
		environment string
		want        string
	}{
		"a file that is not there": {Kubeconfig{File: missing}, "", "--kubeconfig " + missing + ": the file does not exist"},
		"no kubeconfig":            {Kubeconfig{File: garbled}, "", garbled},
		"an empty file":            {Kubeconfig{File: empty}, "", "kubeconfig " + empty + " is missing or empty" + advice},
		"one of the environment":   {Kubeconfig{}, missing, "kubeconfig " + missing + " is missing or empty" + advice},
		"a current context that is not there": {
			Kubeconfig{File: current},
			"",
			"kubeconfig " + current + `: context "gone" does not exist; pass --context with an existing one: one, two`,
		},
		"no current context": {
			Kubeconfig{File: two},
			"",
			"kubeconfig " + two + `: no current context is set; pass --context with an existing one: one, two`,
		},
		"a context that is not there": {
			Kubeconfig{Context: "three"},
			two,
			"kubeconfig " + two + `: context "three" does not exist; pass --context with an existing one: one, two`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.environment)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			_, err := test.kubeconfig.rest()
			require.ErrorContains(t, err, test.want)
		})
	}
}
