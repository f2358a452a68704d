package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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
	// last is what the EndpointSlice says.
	last []discoveryv1.Endpoint
}

type replica struct {
	*harness.Headwater

	webhook string
	slice   string
}

// newReplicas runs none yet.
func newReplicas(e *env, rules string) *replicas {
	e.Helper()
	r := &replicas{env: e, rules: rules, address: ownAddress(e)}
	_, err := e.admin.CoreV1().Services(harness.Namespace).Create(e.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: webhookService},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "webhook", Port: 443}}},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Cleanup(func() {
		_ = e.admin.CoreV1().Services(harness.Namespace).Delete(context.WithoutCancel(e.Context()), webhookService, metav1.DeleteOptions{})
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
		require.NoError(e, e.admin.DiscoveryV1().EndpointSlices(harness.Namespace).DeleteCollection(context.WithoutCancel(e.Context()),
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
	o := r.options(r.rules)
	o.Webhook, o.Service = address, true
	o.Args = append([]string{"--webhook-drain", drain, "--webhook-ca-settle", caSettle.String()}, args...)
	one := &replica{Headwater: r.env.launch(o), webhook: address, slice: o.Name}
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
	r.eventually(func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.last) != len(r.running) {
			return fmt.Errorf("%d endpoints of %d replicas", len(r.last), len(r.running))
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
		var ready []discoveryv1.Endpoint
		for _, one := range r.all() {
			if isReady(ctx, one.MetricsURL) {
				ready = append(ready, discoveryv1.Endpoint{Addresses: []string{r.address}, TargetRef: &corev1.ObjectReference{Name: one.webhook}})
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

// publish has one EndpointSlice for each replica that is ready, since each has a
// port of its own.
func (r *replicas) publish(ctx context.Context, ready []discoveryv1.Endpoint) error {
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	name := func(e discoveryv1.Endpoint) string { return e.TargetRef.Name }
	has := func(list []discoveryv1.Endpoint, one discoveryv1.Endpoint) bool {
		return slices.ContainsFunc(list, func(other discoveryv1.Endpoint) bool { return name(other) == name(one) })
	}
	endpoints := r.admin.DiscoveryV1().EndpointSlices(harness.Namespace)
	for _, one := range ready {
		if has(last, one) {
			continue
		}
		_, port, err := net.SplitHostPort(name(one))
		if err != nil {
			return err
		}
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			return err
		}
		target, portName := int32(number), "webhook"
		_, err = endpoints.Create(ctx, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: webhookService + "-" + port, Labels: map[string]string{discoveryv1.LabelServiceName: webhookService},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: one.Addresses}},
			Ports:       []discoveryv1.EndpointPort{{Name: &portName, Port: &target}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for _, one := range last {
		_, port, _ := net.SplitHostPort(name(one))
		if has(ready, one) {
			continue
		}
		if err := endpoints.Delete(ctx, webhookService+"-"+port, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = ready
	return nil
}

// traffic is writes without a pause, and what was wrong about their outcome.
type traffic struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	counts map[string]int
	faults []error
}

// each does one thing over and over until the traffic stops.
func (t *traffic) each(ctx context.Context, what string, do func(context.Context, int) error) {
	t.done.Go(func() {
		ticker := time.NewTicker(15 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := do(ctx, n)
			if ctx.Err() != nil {
				return // it was cut short
			}
			t.mu.Lock()
			t.counts[what]++
			if err != nil {
				t.faults = append(t.faults, fmt.Errorf("%s, at %s: %w", what, time.Now().Format(time.StampMilli), err))
			}
			t.mu.Unlock()
		}
	})
}

// ends stops the traffic; there must have been some of each, and no fault.
func (t *traffic) ends(e *env) {
	e.Helper()
	t.stop()
	t.done.Wait()
	e.Logf("traffic: %v", t.counts)
	require.NoError(e, errors.Join(t.faults...))
	for what, count := range t.counts {
		require.Positive(e, count, what)
	}
}

// newTraffic writes to the protected Secret as one who may and as one who may
// not, and to the other one, which nothing protects.
func (e *env) newTraffic(namespace, protected, other string, may, mayNot kubernetes.Interface) *traffic {
	ctx, stop := context.WithCancel(e.Context())
	t := &traffic{stop: stop, counts: map[string]int{}}
	e.Cleanup(func() {
		t.stop()
		t.done.Wait()
	})
	t.each(ctx, "allowed write", func(ctx context.Context, n int) error {
		return tryEdit(ctx, may, namespace, protected, strconv.Itoa(n))
	})
	t.each(ctx, "refused write", func(ctx context.Context, n int) error {
		return refused(tryEdit(ctx, mayNot, namespace, protected, strconv.Itoa(n)))
	})
	t.each(ctx, "unprotected write", func(ctx context.Context, n int) error {
		return tryEdit(ctx, mayNot, namespace, other, strconv.Itoa(n))
	})
	return t
}

// handshakes makes new connections to every replica all the time, as an API server
// does that heard of a new CA behind time after it was published. An API server
// keeps the connections that it has, and would show little.
func (r *replicas) handshakes(t *traffic, behind time.Duration) {
	type bundle struct {
		at  time.Time
		pem []byte
	}
	var known []bundle
	ctx, stop := context.WithCancel(r.Context())
	end := t.stop
	t.stop = func() {
		stop()
		end()
	}
	t.each(ctx, "handshake", func(ctx context.Context, _ int) error {
		live, err := r.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhookConfiguration, metav1.GetOptions{})
		if err != nil || len(live.Webhooks) == 0 {
			return fmt.Errorf("no webhook is registered: %w", err)
		}
		now := time.Now()
		if latest := live.Webhooks[0].ClientConfig.CABundle; len(known) == 0 || !bytes.Equal(known[len(known)-1].pem, latest) {
			known = append(known, bundle{now, latest})
		}
		for len(known) > 1 && now.Sub(known[1].at) >= behind {
			known = known[1:]
		}
		for _, one := range r.all() {
			if err := shakes(ctx, one.webhook, known[0].pem); err != nil {
				return err
			}
		}
		return nil
	})
}

// ignoreGone makes nothing of the deletion of what is not there.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// shakes connects as the API server does that trusts bundle.
func shakes(ctx context.Context, address string, bundle []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return errors.New("the bundle holds no CA")
	}
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: webhookHost, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
