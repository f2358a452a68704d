package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clusterOf writes a kubeconfig for an API server that serves lists of these names, by
// path, and the ConfigMap of Headwater's namespace if configuration is not empty.
func clusterOf(t *testing.T, lists map[string][]string, configuration string) (file string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		names, found := lists[r.URL.Path]
		var answer any
		switch {
		case found:
			list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
			for _, name := range names {
				list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
			answer = list
		case configuration != "" && r.URL.Path == "/api/v1/namespaces/headwater-system/configmaps/headwater":
			answer = &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"headwater.yaml": configuration}}
		default:
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "it"
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", Namespace: "team"}
	config.Contexts["other"] = &clientcmdapi.Context{Cluster: "it"}
	file = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

// completes returns what a shell is offered after args.
func completes(t *testing.T, file string, args ...string) []string {
	t.Helper()
	said := says(t, "headwater", append([]string{"__complete", args[0], "--kubeconfig", file}, args[1:]...)...)
	offered, _, _ := strings.Cut(said, "Completion ended")
	return strings.Fields(offered)
}

func TestShellsAreOfferedWhatTheClusterHas(t *testing.T) {
	file := clusterOf(t, map[string][]string{
		"/api/v1/namespaces":                             {"team", "other"},
		"/apis/apps/v1/namespaces/team/deployments":      {"web", "worker"},
		"/api/v1/namespaces/team/pods":                   {"web-0"},
		"/api/v1/namespaces/elsewhere/secrets":           {"tls"},
		"/apis/headwater.dev/v1alpha1/rulestatuses":      {"blog", "ca"},
		"/api/v1/namespaces/unreadable/configmaps/other": nil,
	}, "")
	const noFiles, noSpace = ":4", ":6"
	for line, want := range map[string][]string{
		"status |":                            {"blog", "ca", noFiles},
		"approve |":                           {"blog", "ca", noFiles},
		"promote |":                           {"blog", "ca", noFiles},
		"diff |":                              {"blog", "ca", noFiles},
		"status blog |":                       {noFiles},
		"explain |":                           {"deployment/", "statefulset/", "daemonset/", "cronjob/", "pod/", noSpace},
		"explain deploy/|":                    {"deploy/web", "deploy/worker", noFiles},
		"explain Deployments |":               {"web", "worker", noFiles},
		"explain po/|":                        {"po/web-0", noFiles},
		"explain deploy/web |":                {noFiles},
		"explain job/|":                       {noFiles},
		"explain sts/|":                       {noFiles},
		"consumers |":                         {"secret/", "configmap/", noSpace},
		"consumers -n elsewhere secret/|":     {"secret/tls", noFiles},
		"explain -n |":                        {"team", "other", noFiles},
		"status --headwater-namespace |":      {"team", "other", noFiles},
		"plan --context |":                    {"it", "other", noFiles},
		"consumers -n unreadable configmap/|": {noFiles},
	} {
		t.Run(line, func(t *testing.T) {
			before, after, _ := strings.Cut(line, "|")
			args := strings.Split(before, " ")
			args[len(args)-1] += after
			require.Equal(t, want, completes(t, file, args...))
		})
	}
}

func TestShellsAreOfferedTheRulesThatACommandIsAbout(t *testing.T) {
	file := clusterOf(t, nil, `apiVersion: headwater.dev/v1alpha1
kind: Config
rules:
- name: spread
  source: {kind: Secret, namespace: a, name: x}
  sync: {}
- name: guarded
  source: {kind: Secret, namespace: a, name: y}
  protect: {}
`)
	require.Equal(t, []string{"spread", ":4"}, completes(t, file, "approve", ""))
	require.Equal(t, []string{"guarded", ":4"}, completes(t, file, "who-can-edit", ""))
}

func TestAShellDoesNotWaitForAClusterThatDoesNotAnswer(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer server.Close()
	defer close(stop)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "it"
	config.Clusters["it"], config.Contexts["it"] = &clientcmdapi.Cluster{Server: server.URL}, &clientcmdapi.Context{Cluster: "it"}
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	require.Equal(t, []string{":4"}, completes(t, file, "explain", "deploy/")) // which the server never answers
}
