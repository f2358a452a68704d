package kube

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Kubeconfig says how to reach a cluster.
type Kubeconfig struct {
	// File is a path. If it is empty, $KUBECONFIG, ~/.kube/config or the pod's
	// service account is used, in this order.
	File string
	// Context is a context of the file; empty for the current context.
	Context string
	// Loader, if set, loads File and Context with kubectl's other flags.
	Loader clientcmd.ClientConfig
}

// ErrNoCluster is returned when neither a kubeconfig nor an in-cluster service
// account was found.
var errNoCluster = errors.New("no cluster to talk to: pass --kubeconfig FILE, set KUBECONFIG, or run inside a cluster")

func (k Kubeconfig) rest() (*rest.Config, error) {
	client := k.loader()
	files := strings.Join(client.ConfigAccess().GetLoadingPrecedence(), ", ")
	raw, err := client.RawConfig()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--kubeconfig %s: the file does not exist", k.File)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	context, known := cmp.Or(k.Context, raw.CurrentContext), strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", ")
	if context != "" && raw.Contexts[context] == nil {
		return nil, fmt.Errorf("kubeconfig %s: context %q does not exist; pass --context with an existing one: %s", files, context, cmp.Or(known, "none"))
	}
	config, err := client.ClientConfig()
	named := cmp.Or(k.File, os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	switch empty := namesNoCluster(config, err); {
	case empty && known != "":
		return nil, fmt.Errorf("kubeconfig %s: no current context is set; pass --context with an existing one: %s", files, known)
	case empty && named != "":
		return nil, fmt.Errorf("kubeconfig %s is missing or empty: %w", named, errNoCluster)
	case empty:
		return nil, errNoCluster
	case err != nil:
		return nil, fmt.Errorf("kubeconfig %s: %w", files, err)
	}
	return config, nil
}

// Namespace is the namespace of objects whose name says none.
type Namespace struct {
	Name string
	// Asked is true if the user named it. Otherwise it is that of the context.
	Asked bool
}

// Namespace returns the namespace of kubectl's flag, or else that of the context. The
// name is empty if the kubeconfig is invalid.
func (k Kubeconfig) Namespace() Namespace {
	name, asked, err := k.loader().Namespace()
	if err != nil {
		return Namespace{}
	}
	return Namespace{name, asked}
}

func (k Kubeconfig) loader() clientcmd.ClientConfig {
	if k.Loader != nil {
		return k.Loader
	}
	loading := clientcmd.NewDefaultClientConfigLoadingRules()
	loading.ExplicitPath, loading.WarnIfAllMissing = k.File, false
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loading, &clientcmd.ConfigOverrides{CurrentContext: k.Context})
}

// namesNoCluster reports whether no kubeconfig and no flag names a cluster. Then config
// is nil, or has the address that kubectl's flags fall back to.
func namesNoCluster(config *rest.Config, err error) bool {
	if err != nil {
		return clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster)
	}
	return config.Host == clientcmd.ClusterDefaults.Server && os.Getenv("KUBERNETES_MASTER") == ""
}
