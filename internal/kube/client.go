package kube

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/kube/leader"
)

// Clients are the connections to one API server.
type Clients struct {
	Typed    kubernetes.Interface
	Metadata metadata.Interface
	// Dynamic reads and writes kinds that this program has no Go types for.
	Dynamic dynamic.Interface
	// Requests are the metrics of all requests; nil for fake clients.
	Requests prometheus.Collector
	// Host is the API server's address, for messages.
	Host string

	// Scope is what caches read.
	Scope Scope
	// Config is the configuration of the clients.
	Config *rest.Config
}

// Connect builds clients for the cluster of kubeconfig. It sends no request.
//
// The clients have no rate limit: the API server's priority and fairness limits
// requests by status 429 with Retry-After, which client-go honours.
func Connect(kubeconfig Kubeconfig, userAgent string) (*Clients, error) {
	config, err := kubeconfig.rest()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = userAgent
	requests := newRequests()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countingTransport{next, requests} })
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return leader.Fence{Next: next} })
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
	return &Clients{Typed: typed, Metadata: meta, Dynamic: untyped, Requests: requests, Host: config.Host, Config: config}, nil
}

// As returns a client that impersonates user. It needs the verb impersonate.
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
