package protect

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

const (
	webhookService = "headwater-webhook"
	webhookHost    = webhookService + "." + harness.Namespace + ".svc"
	probeEvery     = 100 * time.Millisecond
	// drain is long enough for the probe to notice and for the API server to hear
	// of it, on a machine that is busy too.
	drain = "1500ms"
	// caSettle is how long replicas wait for the API server to hear of a new CA.
	caSettle = 1500 * time.Millisecond
)

// replicas are what a Deployment runs behind the Service. The test plays the
// kubelet, which probes them, and the controller of EndpointSlices.
type replicas struct {
	*env

	rules   string
	address string
	mu      sync.Mutex
	running []*replica
	// published are the addresses that have an EndpointSlice.
	published []string
}

type replica struct {
	*harness.Headwater

	webhook string
}

const serviceRule = `
- name: NAME
  source: {kind: Secret, namespace: NAME-src, name: shared}
  protect: {allow: {clusterRoles: [], users: [NAME-owner]}}
`

// behindTheService has a rule called name, whose owner may edit its Secret
// "shared" and whose mallory may not. Nothing runs yet.
func (e *env) behindTheService(name string) (r *replicas, owner, mallory kubernetes.Interface) {
	e.Helper()
	e.Namespace(name + "-src")
	for _, secret := range []string{"shared", "other"} {
		e.Secret(name+"-src", secret, map[string]string{"k": "v"})
	}
	e.ClusterRole(name+"-editor", e2e.SecretsEditor())
	for _, user := range []string{name + "-owner", name + "-mallory"} {
		e.Grant("", name+"-editor", user)
	}
	return newReplicas(e, strings.ReplaceAll(serviceRule, "NAME", name)), e.Client(name + "-owner"), e.Client(name + "-mallory")
}

// newReplicas runs none yet.
func newReplicas(e *env, rules string) *replicas {
	e.Helper()
	r := &replicas{env: e, rules: rules, address: ownAddress(e)}
	_, err := e.Admin.CoreV1().Services(harness.Namespace).Create(e.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: webhookService},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "webhook", Port: 443}}},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Cleanup(func() {
		_ = e.Admin.CoreV1().Services(harness.Namespace).Delete(context.WithoutCancel(e.Context()), webhookService, metav1.DeleteOptions{})
	})
	probing, stop := context.WithCancel(e.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.probe(probing)
	}()
	e.Cleanup(func() {
		stop()
		<-done
		require.NoError(e, e.Admin.DiscoveryV1().EndpointSlices(harness.Namespace).DeleteCollection(context.WithoutCancel(e.Context()),
			metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + webhookService}))
	})
	return r
}

// ownAddress is one by which this machine reaches itself: the API server takes no
// loopback address for an endpoint.
func ownAddress(e *env) string {
	e.Helper()
	addresses, err := net.InterfaceAddrs()
	require.NoError(e, err)
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	require.Fail(e, "this machine has no IPv4 address but loopback, and a Service can have no other endpoints")
	return ""
}

// launch starts one more, which gets requests as soon as it is ready.
func (r *replicas) launch(args ...string) *replica {
	r.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(r.address, "0"))
	require.NoError(r, err)
	address := listener.Addr().String()
	require.NoError(r, listener.Close())
	o := r.Options(r.rules)
	o.Webhook, o.Service = address, true
	o.Args = append([]string{"--webhook-drain", drain, "--webhook-ca-settle", caSettle.String()}, args...)
	one := &replica{Headwater: r.Launch(o), webhook: address}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = append(r.running, one)
	return one
}

// ready waits until all are ready and known to be.
func (r *replicas) ready() {
	r.Helper()
	for _, one := range r.all() {
		require.NoError(r, one.Ready(r.Context()))
	}
	r.Eventually(func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.published) != len(r.running) {
			return fmt.Errorf("%d endpoints of %d replicas", len(r.published), len(r.running))
		}
		return nil
	})
}

func (r *replicas) all() []*replica {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.running)
}

// stop ends one as Kubernetes would.
func (r *replicas) stop(one *replica) {
	one.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = slices.DeleteFunc(r.running, func(other *replica) bool { return other == one })
}

// probe keeps the EndpointSlices to what is ready until ctx ends.
func (r *replicas) probe(ctx context.Context) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var ready []string
		for _, one := range r.all() {
			if isReady(ctx, one.MetricsURL) {
				ready = append(ready, one.webhook)
			}
		}
		if err := r.publish(ctx, ready); err != nil && ctx.Err() == nil {
			r.Logf("endpoints not published, trying again: %v", err)
		}
	}
}

func isReady(ctx context.Context, metrics string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, metrics+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// publish has one EndpointSlice for each address that is ready, since each has a
// port of its own.
func (r *replicas) publish(ctx context.Context, ready []string) error {
	r.mu.Lock()
	last := r.published
	r.mu.Unlock()
	endpointSlices := r.Admin.DiscoveryV1().EndpointSlices(harness.Namespace)
	for _, address := range ready {
		if slices.Contains(last, address) {
			continue
		}
		slice, err := endpointSlice(address)
		if err != nil {
			return err
		}
		if _, err := endpointSlices.Create(ctx, slice, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for _, address := range last {
		if slices.Contains(ready, address) {
			continue
		}
		if err := harness.IgnoreGone(endpointSlices.Delete(ctx, sliceName(address), metav1.DeleteOptions{})); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.published = ready
	return nil
}

func sliceName(address string) string {
	return webhookService + "-" + strings.ReplaceAll(address, ":", "-")
}

func endpointSlice(address string) (*discoveryv1.EndpointSlice, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return nil, err
	}
	name, target := "webhook", int32(number)
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: sliceName(address), Labels: map[string]string{discoveryv1.LabelServiceName: webhookService}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{host}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &target}},
	}, nil
}
