package kube

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Clients are the connections to one API server.
type Clients struct {
	Typed    kubernetes.Interface
	Metadata metadata.Interface
	// Dynamic reads and writes kinds that this program has no types of.
	Dynamic dynamic.Interface
	// Host is the API server's address, for messages.
	Host string

	// Config is what they were made from.
	Config *rest.Config
}

// ErrNoCluster is returned when neither a kubeconfig nor an in-cluster service
// account was found.
var ErrNoCluster = errors.New("no cluster to talk to: pass --kubeconfig FILE, set KUBECONFIG, or run inside a cluster")

// Connect builds clients from the kubeconfig file, or, when it is empty, from
// $KUBECONFIG, ~/.kube/config, or the pod's service account. It sends no
// request.
//
// No client-side rate limit is set: the API server's priority and fairness
// does that job, and answers 429 with a Retry-After that client-go honours.
func Connect(kubeconfig, userAgent string) (*Clients, error) {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = userAgent
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return fence{next} })
	typed, err := newTyped(config)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build metadata client for %s: %w", config.Host, err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build dynamic client for %s: %w", config.Host, err)
	}
	return &Clients{Typed: typed, Metadata: meta, Dynamic: untyped, Host: config.Host, Config: config}, nil
}

// As returns a client that acts as user, for which it needs the permission to
// impersonate them.
func (c *Clients) As(user string) (kubernetes.Interface, error) {
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return newTyped(config)
}

func newTyped(config *rest.Config) (kubernetes.Interface, error) {
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	typed, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return nil, fmt.Errorf("build client for %s: %w", config.Host, err)
	}
	return typed, nil
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		if _, err := os.Stat(kubeconfig); err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
	}
	loading := clientcmd.NewDefaultClientConfigLoadingRules()
	loading.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loading, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster) {
		return nil, ErrNoCluster
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}
