package inspect

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/headwater-k8s/headwater/internal/kube"
)

func kubeconfigOf(t *testing.T, server string) kube.Kubeconfig {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "it"
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: server}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "old"}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "me"}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return kube.Kubeconfig{File: file}
}

// A file would not help.
func TestAnAPIServerThatDoesNotAnswerIsNotTakenForAMissingConfiguration(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	options := Options{Kubeconfig: kubeconfigOf(t, server.URL), Own: "headwater-system"}
	_, err := Open(t.Context(), options)
	require.ErrorContains(t, err, "API server "+server.URL+" does not accept the credentials")
	require.NotContains(t, err.Error(), "--config")
	server.Close()
	_, err = Open(t.Context(), options)
	require.ErrorContains(t, err, "API server "+server.URL+" cannot be reached")
	require.NotContains(t, err.Error(), "--config")
}
