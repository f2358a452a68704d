package kube

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

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
	// Watches are those of these clients; nil for fake clients.
	Watches *Watches
	dates   *dates
	// Owner owns what is to go with an uninstallation.
	Owner *Owner
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
	requests, watches, answered := newRequests(), newWatches(), &dates{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countingTransport{next, requests} })
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return watchingTransport{next, watches} })
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return datingTransport{next, answered} })
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
	return &Clients{Typed: typed, Metadata: meta, Dynamic: untyped, Requests: requests, Watches: watches, dates: answered, Owner: NewOwner(typed), Host: config.Host, Config: config}, nil
}

// As returns a client that impersonates user, in these groups. It needs the verb
// impersonate on each.
func (c *Clients) As(user string, groups ...string) (kubernetes.Interface, error) {
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
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

// dates remembers the Date of the latest answer of the API server.
type dates struct{ latest atomic.Pointer[string] }

type datingTransport struct {
	next  http.RoundTripper
	dates *dates
}

// RoundTrip implements http.RoundTripper.
func (t datingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		if date := response.Header.Get("Date"); date != "" {
			t.dates.latest.Store(&date)
		}
	}
	return response, err
}

// WrappedRoundTripper returns the next one, so that client-go can cancel a request.
func (t datingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// AnsweredAt returns the time of the API server when it gave its latest answer, in whole
// seconds, and that of this machine if it did not say.
func (c *Clients) AnsweredAt() time.Time {
	if c.dates != nil {
		if date := c.dates.latest.Load(); date != nil {
			if at, err := http.ParseTime(*date); err == nil {
				return at
			}
		}
	}
	return time.Now()
}

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
