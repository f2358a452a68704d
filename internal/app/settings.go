// Package app composes the process: it reads the configuration, wires the
// modules, brings them up in order and puts a changed configuration in force.
package app

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/serve"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// Settings are the process's own settings, from flags and environment. What
// is done with which object is in the configuration file alone.
type Settings struct {
	ConfigFile string
	Kubeconfig kube.Kubeconfig
	Namespace  string
	// WithoutSecrets is true if Headwater may not read Secrets outside Namespace.
	WithoutSecrets bool
	WebhookURL     string
	WebhookAddress string
	// WebhookDrain and WebhookCASettle are Drain and Settle of protect.Options.
	WebhookDrain    time.Duration
	WebhookCASettle time.Duration
	MetricsAddress  string
	// MetricsAuth has /metrics, and the page, answer only who may get it, over TLS.
	MetricsAuth bool
	// Page has the web page served there too, behind the same gate.
	Page bool
	// PageLocalhost serves the page to localhost if there is no MetricsAuth.
	PageLocalhost bool
	// TLSCertFile and TLSKeyFile are what the metrics address serves; empty for Headwater's
	// own. They make it use TLS without MetricsAuth, too.
	TLSCertFile, TLSKeyFile string
	// TLSMinVersion and TLSCipherSuites are for every address that uses TLS.
	TLSMinVersion   string
	TLSCipherSuites []string
	// ClusterName is what the page calls the cluster; it may be empty.
	ClusterName string
	LeaderElect bool
	// LeaseDuration is how long the leader's lease lasts if nobody renews it.
	LeaseDuration time.Duration
	LogFormat     string
	LogLevel      string
	Workers       int
}

// Validate reports what cannot work, naming the flag.
func (s Settings) Validate() error {
	var errs []error
	if s.ConfigFile == "" {
		errs = append(errs, errors.New("--config FILE is needed: the rules are in it"))
	}
	for _, problem := range validation.IsDNS1123Label(s.Namespace) {
		errs = append(errs, fmt.Errorf("--headwater-namespace %q: %s", s.Namespace, problem))
	}
	if _, err := protectspec.NewEndpoint(s.WebhookURL, s.Namespace); err != nil {
		errs = append(errs, err)
	}
	if s.WebhookDrain < 0 {
		errs = append(errs, fmt.Errorf("--webhook-drain %s: must not be negative", s.WebhookDrain))
	}
	if s.WebhookCASettle <= 0 {
		errs = append(errs, fmt.Errorf("--webhook-ca-settle %s: must be greater than 0", s.WebhookCASettle))
	}
	if (s.TLSCertFile == "") != (s.TLSKeyFile == "") {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file: set both or none"))
	}
	if _, err := s.tls(); err != nil {
		errs = append(errs, err)
	}
	if s.LeaderElect && (s.LeaseDuration < leader.MinLeaseDuration || s.LeaseDuration%time.Second != 0) {
		errs = append(errs, fmt.Errorf("--lease-duration %s: must be whole seconds, at least %s", s.LeaseDuration, leader.MinLeaseDuration))
	}
	if s.Workers < 1 {
		errs = append(errs, fmt.Errorf("--workers %d: must be at least 1", s.Workers))
	}
	return errors.Join(errs...)
}

// load reads the configuration that ConfigFile holds.
func (s Settings) load() (*config.Config, error) {
	loaded, err := config.LoadIn(s.Namespace, s.ConfigFile)
	if err == nil && s.WithoutSecrets {
		err = loaded.WithoutSecrets()
	}
	return loaded, err
}

// scope is what caches read.
func (s Settings) scope() (scope kube.Scope) {
	if s.WithoutSecrets {
		scope.Lacking = []kube.Permission{{Resource: object.Secret.Resource()}}
	}
	return scope
}

func (s Settings) tls() (serve.TLS, error) { return serve.NewTLS(s.TLSMinVersion, s.TLSCipherSuites) }

// lease is 0 without leader election.
func (s Settings) lease() time.Duration {
	if !s.LeaderElect {
		return 0
	}
	return s.LeaseDuration
}
