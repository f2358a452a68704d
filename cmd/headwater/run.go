package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
)

func runCommand() *cobra.Command {
	var settings app.Settings
	command := &cobra.Command{
		Use: "run --config FILE",
		Example: `  headwater run --config headwater.yaml
  HEADWATER_LOG_LEVEL=debug headwater run --config headwater.yaml`,
		Short: "Run the service",
		Long: `Run the service until it receives SIGTERM or SIGINT (Ctrl-C). A second signal
ends it immediately, with exit code 1.

` + aboutEnvironment,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return app.Run(command.Context(), settings) },
	}
	flags := command.Flags()
	flags.StringVar(&settings.ConfigFile, "config", "", "the configuration file; changes take effect without a restart")
	addKubeconfig(flags, &settings.Kubeconfig)
	addOwnNamespace(flags, &settings.Namespace)
	flags.BoolVar(&settings.WithoutSecrets, "without-secrets", false, "work without permissions on Secrets outside its own namespace; the configuration must need none")
	flags.StringVar(&settings.WebhookURL, "webhook-url", "", "URL at which the API server reaches the webhook (default: the Service headwater-webhook); required outside a cluster")
	flags.StringVar(&settings.WebhookAddress, "webhook-address", ":9443", "address on which the webhook listens")
	flags.DurationVar(&settings.WebhookDrain, "webhook-drain", 15*time.Second, "how long the webhook keeps serving after SIGTERM; at least 10s less than the pod's terminationGracePeriodSeconds")
	flags.DurationVar(&settings.WebhookCASettle, "webhook-ca-settle", 10*time.Minute, "how long to publish a new CA of the webhook before serving a certificate that it signed")
	flags.StringVar(&settings.MetricsAddress, "metrics-address", ":8080", "address that serves /metrics, /healthz and /readyz")
	flags.BoolVar(&settings.MetricsAuth, "metrics-auth", false, "serve these over TLS, and /metrics only to users that RBAC allows to get it (nonResourceURLs); uses TokenReview and SubjectAccessReview")
	flags.BoolVar(&settings.Page, "page", false, "serve a read-only status page at /page of the same address: with --metrics-auth to users that RBAC allows to get it, or with --page-localhost to localhost")
	flags.BoolVar(&settings.PageLocalhost, "page-localhost", false, "serve the page without authorization to requests from localhost, such as kubectl port-forward; also to everybody whose requests another container of the pod forwards, such as a service mesh")
	flags.StringVar(&settings.TLSCertFile, "tls-cert-file", "", "certificate, with intermediate ones, that the metrics address serves, which then uses TLS; read again when it is renewed (default with --metrics-auth: the webhook's)")
	flags.StringVar(&settings.TLSKeyFile, "tls-private-key-file", "", "private key of --tls-cert-file")
	flags.StringVar(&settings.TLSMinVersion, "tls-min-version", "VersionTLS12", "oldest version of TLS that the metrics address and the webhook accept: VersionTLS12 or VersionTLS13")
	flags.StringSliceVar(&settings.TLSCipherSuites, "tls-cipher-suites", nil, "cipher suites that they accept with TLS 1.2, by their names in Go, separated by commas (default: Go's)")
	flags.StringVar(&settings.ClusterName, "cluster-name", "", "name of the cluster in the header and title of the status page")
	flags.BoolVar(&settings.LeaderElect, "leader-elect", true, "elect a leader, so that only one of several replicas writes")
	flags.DurationVar(&settings.LeaseDuration, "lease-duration", leader.DefaultLeaseDuration, "how long the lease of a leader lasts that was killed; it stops after two thirds of this without the API server")
	flags.StringVar(&settings.LogFormat, "log-format", "json", "json or console")
	flags.StringVar(&settings.LogLevel, "log-level", "info", "debug, info, warn or error")
	flags.IntVar(&settings.Workers, "workers", 32, "how many objects each module writes concurrently; up to four times as many more while requests take longer than 300ms")
	offerValues(command, "log-format", "json", "console")
	offerValues(command, "log-level", "debug", "info", "warn", "error")
	return command
}
