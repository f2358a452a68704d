package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/headwater-k8s/headwater/internal/serve"
	"github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/protect/webhook"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/process"
)

const (
	// yes is a Secret that a webhook judges which allows everything.
	yes = "yes"
	// serveYes is the first argument of a bench that is that webhook. Its others are
	// the address and the files of the certificate and the key.
	serveYes = "serve-yes"
	// yesGrace is how long that webhook gets to end.
	yesGrace = 5 * time.Second
)

// sayYes registers that webhook: as Headwater's is, by the same conditions but
// for another Secret, with the same server, and in a process of its own.
func (a *arena) sayYes(ctx context.Context) (stop func(), err error) {
	address, bundle, stop, err := a.startYes(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.registerYes(ctx, "https://"+address+spec.ReviewPath, bundle); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// startYes starts that process. bundle is the certificate to trust.
func (a *arena) startYes(ctx context.Context) (address string, bundle []byte, stop func(), err error) {
	if address, err = freeAddress(ctx); err != nil {
		return "", nil, nil, err
	}
	bundle, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return "", nil, nil, fmt.Errorf("certificate of the webhook that does nothing: %w", err)
	}
	certFile, keyFile := filepath.Join(a.Run.Dir, "yes.crt"), filepath.Join(a.Run.Dir, "yes.key")
	if err := errors.Join(os.WriteFile(certFile, bundle, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		return "", nil, nil, err
	}
	binary, err := os.Executable()
	if err != nil {
		return "", nil, nil, err
	}
	server, err := process.Start(process.Spec{
		Name: yes, Binary: binary, Args: []string{serveYes, address, certFile, keyFile}, Env: a.Run.Env, LogFile: filepath.Join(a.Run.Dir, "yes.log"),
	})
	if err != nil {
		return "", nil, nil, err
	}
	stop = func() { server.Stop(yesGrace) }
	if err := awaitListener(ctx, address); err != nil {
		stop()
		return "", nil, nil, fmt.Errorf("webhook that does nothing: %w", err)
	}
	return address, bundle, stop, nil
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

func awaitListener(ctx context.Context, address string) error {
	return lab.Eventually(ctx, func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

func (a *arena) registerYes(ctx context.Context, url string, bundle []byte) error {
	configurations := a.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	var config *admissionregistrationv1.ValidatingWebhookConfiguration
	err := lab.Eventually(ctx, func(ctx context.Context) (err error) {
		config, err = configurations.Get(ctx, webhookConfiguration, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	registered := config.Webhooks[0]
	registered.Name = "yes.bench.headwater.dev"
	registered.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle}
	for i, condition := range registered.MatchConditions {
		registered.MatchConditions[i].Expression = strings.ReplaceAll(condition.Expression, sourceNamespace+"/"+shared, sourceNamespace+"/"+yes)
	}
	_, err = configurations.Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{registered},
	}, metav1.CreateOptions{})
	return err
}

// runYes is the webhook that does nothing, until ctx ends.
func runYes(ctx context.Context, address, certFile, keyFile string) error {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return err
	}
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
	return webhook.NewServer(address, 0, http.HandlerFunc(allow), serve.TLS{}.Config(certificate), zap.NewNop()).Run(ctx)
}

// allow reads of a review what an answer must repeat, and nothing else.
func allow(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	serve.Accept(w, r)
	w.Header().Set("Content-Type", "application/json")
	// The API server notices if it cannot read the answer.
	_, _ = fmt.Fprintf(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":%q,"allowed":true}}`, review.Request.UID)
}
