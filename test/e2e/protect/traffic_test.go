package protect

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/lab"
)

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

// also is each for what only one test writes.
func (t *traffic) also(ctx context.Context, what string, do func(context.Context, int) error) {
	ctx, stop := context.WithCancel(ctx)
	end := t.stop
	t.stop = func() {
		stop()
		end()
	}
	t.each(ctx, what, do)
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
		return lab.TryEdit(ctx, may, namespace, protected, strconv.Itoa(n))
	})
	t.each(ctx, "refused write", func(ctx context.Context, n int) error {
		return lab.Refused(lab.TryEdit(ctx, mayNot, namespace, protected, strconv.Itoa(n)))
	})
	t.each(ctx, "unprotected write", func(ctx context.Context, n int) error {
		return lab.TryEdit(ctx, mayNot, namespace, other, strconv.Itoa(n))
	})
	return t
}

// handshakes makes new connections to every replica all the time, as an API server
// does that heard of a new CA behind time after it was published. An API server
// keeps the connections that it has, and would show little. What took as long as
// caSettle, on a slow machine, is nothing that Headwater waits for.
func (r *replicas) handshakes(t *traffic, behind time.Duration) {
	type bundle struct {
		unseen time.Time // when it was not there yet
		pem    []byte
	}
	var known []bundle
	looked := time.Now()
	t.also(r.Context(), "handshake", func(ctx context.Context, _ int) error {
		unseen := looked
		looked = time.Now()
		live, err := r.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhookConfiguration, metav1.GetOptions{})
		if err != nil || len(live.Webhooks) == 0 {
			return fmt.Errorf("no webhook is registered: %w", err)
		}
		if latest := live.Webhooks[0].ClientConfig.CABundle; len(known) == 0 || !bytes.Equal(known[len(known)-1].pem, latest) {
			known = append(known, bundle{unseen, latest})
		}
		for len(known) > 1 && time.Since(known[1].unseen) >= behind {
			known = known[1:]
		}
		for _, one := range r.all() {
			err := shakes(ctx, one.WebhookAddress(), known[0].pem)
			tooLate := len(known) > 1 && time.Since(known[1].unseen) >= caSettle
			if err != nil && !tooLate {
				return err
			}
		}
		return nil
	})
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
