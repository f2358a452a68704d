package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// WebhookHost is the name by which the API server reaches the webhook of several
// replicas.
const WebhookHost = webhookService + "." + Namespace + ".svc"

const (
	webhookService = "headwater-webhook"
	probeEvery     = 100 * time.Millisecond
	probeTimeout   = time.Second
	// unanswered is how many probes in a row get no answer before a replica is not ready
	// any more: Kubernetes' default.
	unanswered = 3
)

// Service is the Service of the webhook, by which the API server reaches those
// replicas that are ready. It plays the kubelet, which probes them, and the
// controller of EndpointSlices. Its methods may be called concurrently.
type Service struct {
	client kubernetes.Interface
	// host is an address of this machine that endpoints can have.
	host string
	// warn is told what is tried again.
	warn func(error)
	end  func()

	mu      sync.Mutex
	running []*Headwater
	// published are the addresses that have an EndpointSlice.
	published []string
}

// NewService makes the Service, without replicas yet. Close ends it.
func NewService(ctx context.Context, client kubernetes.Interface, warn func(error)) (*Service, error) {
	host, err := ownAddress()
	if err != nil {
		return nil, err
	}
	_, err = client.CoreV1().Services(Namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: webhookService},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "webhook", Port: 443}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create Service: %w", err)
	}
	s := &Service{client: client, host: host, warn: warn}
	probing, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.probe(probing)
	}()
	s.end = func() {
		stop()
		<-done
	}
	return s, nil
}

// ownAddress is one by which this machine reaches itself: the API server takes no
// loopback address for an endpoint.
func ownAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("find an address of this machine: %w", err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String(), nil
		}
	}
	return "", errors.New("this machine has no IPv4 address but loopback, and a Service can have no other endpoints")
}

// FreeAddress is one for a replica's webhook, which the Service can have.
func (s *Service) FreeAddress() (string, error) { return freeAddress(s.host) }

// Add has a replica get requests as soon as it is ready. It was started with
// Options.Service and an address of FreeAddress.
func (s *Service) Add(one *Headwater) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, one)
}

// Remove forgets a replica.
func (s *Service) Remove(one *Headwater) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(other *Headwater) bool { return other == one })
}

// All are the replicas.
func (s *Service) All() []*Headwater {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.running)
}

// Ready waits until all replicas are ready and known to be.
func (s *Service) Ready(ctx context.Context) error {
	for _, one := range s.All() {
		if err := one.Ready(ctx); err != nil {
			return err
		}
	}
	return Eventually(ctx, func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return ErrorIf(len(s.published) != len(s.running), "%d endpoints of %d replicas", len(s.published), len(s.running))
	})
}

// Close removes the Service and its endpoints. The replicas run on.
func (s *Service) Close(ctx context.Context) error {
	s.end()
	err := s.client.CoreV1().Services(Namespace).Delete(ctx, webhookService, metav1.DeleteOptions{})
	return errors.Join(err, s.client.DiscoveryV1().EndpointSlices(Namespace).DeleteCollection(ctx,
		metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + webhookService}))
}

// probe keeps the EndpointSlices to what is ready until ctx ends.
func (s *Service) probe(ctx context.Context) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	slow := map[*Headwater]int{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var ready []string
		for _, one := range s.All() {
			isReady, answered := one.isReady(ctx)
			if slow[one]++; answered {
				slow[one] = 0
			}
			if isReady || !answered && slow[one] < unanswered && s.has(one) {
				ready = append(ready, one.WebhookAddress())
			}
		}
		if err := s.publish(ctx, ready); err != nil && ctx.Err() == nil {
			s.warn(fmt.Errorf("endpoints not published, trying again: %w", err))
		}
	}
}

// has reports whether the replica has an EndpointSlice.
func (s *Service) has(one *Headwater) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.published, one.WebhookAddress())
}

// isReady probes once. A connection that is refused is an answer.
func (h *Headwater) isReady(ctx context.Context) (isReady, answered bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, status, err := get(ctx, h.MetricsURL+"/readyz")
	return err == nil && status == http.StatusOK, ctx.Err() == nil
}

// publish has one EndpointSlice for each address that is ready, since each has a
// port of its own.
func (s *Service) publish(ctx context.Context, ready []string) error {
	s.mu.Lock()
	last := s.published
	s.mu.Unlock()
	endpointSlices := s.client.DiscoveryV1().EndpointSlices(Namespace)
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
		if err := endpointSlices.Delete(ctx, sliceName(address), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = ready
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
