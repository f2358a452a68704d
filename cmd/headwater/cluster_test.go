package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigOf writes a kubeconfig for an API server that refuses every request, and
// returns the headers of the last request.
func kubeconfigOf(t *testing.T, user *clientcmdapi.AuthInfo) (file string, last func() http.Header) {
	t.Helper()
	headers := make(chan http.Header, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "it"
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: server.URL}
	config.AuthInfos["me"] = user
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "me"}
	file = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file, func() http.Header { return <-headers }
}

func TestCommandsImpersonateWhomKubectlsFlagsName(t *testing.T) {
	file, last := kubeconfigOf(t, &clientcmdapi.AuthInfo{Username: "me", Password: "x"})
	for _, args := range [][]string{{"status"}, {"plan"}, {"explain", "deploy/a/b"}, {"migrate"}} {
		t.Run(args[0], func(t *testing.T) {
			fails(t, append(args, "--kubeconfig", file, "--as", "jane", "--as-group", "team", "--as-group", "oncall")...)
			header := last()
			require.Equal(t, "jane", header.Get("Impersonate-User"))
			require.Equal(t, []string{"team", "oncall"}, header.Values("Impersonate-Group"))
		})
	}
}

func TestAKubeconfigWithAnAuthPluginIsAccepted(t *testing.T) {
	file, _ := kubeconfigOf(t, &clientcmdapi.AuthInfo{AuthProvider: &clientcmdapi.AuthProviderConfig{
		Name: "oidc", Config: map[string]string{"idp-issuer-url": "https://idp.example", "client-id": "me"},
	}})
	problem := fails(t, "status", "--kubeconfig", file)
	require.NotContains(t, problem, "no Auth Provider found")
	require.Contains(t, problem, "API server")
}

func TestACommandWithoutAClusterSaysWhatIsMissing(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_MASTER", "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "missing"))
	require.Contains(t, fails(t, "status"), "no cluster to talk to: pass --kubeconfig FILE")
}
