package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/app"
)

func runCommand() *cobra.Command {
	var settings app.Settings
	command := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Run the service",
		Long: `Run the service until SIGTERM or SIGINT, such as Ctrl-C. A second one ends it at
once, with 1, in the midst of what is under way.

Every flag can also be given as an environment variable: --log-level is
HEADWATER_LOG_LEVEL, and so on; a flag wins over its variable.`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return app.Run(command.Context(), settings) },
	}
	flags := command.Flags()
	flags.StringVar(&settings.ConfigFile, "config", "", "the configuration file; it is watched, and a change takes effect at once")
	addKubeconfig(flags, &settings.Kubeconfig)
	flags.StringVar(&settings.Namespace, "namespace", "headwater-system", "Headwater's own namespace")
	flags.StringVar(&settings.WebhookURL, "webhook-url", "", "where the API server reaches the webhook, when not through the Service headwater-webhook; needed outside a cluster")
	flags.StringVar(&settings.WebhookAddress, "webhook-address", ":9443", "where the webhook listens")
	flags.DurationVar(&settings.WebhookDrain, "webhook-drain", 15*time.Second, "how long the webhook goes on serving once told to stop; at least 10s less than the pod's terminationGracePeriodSeconds")
	flags.DurationVar(&settings.WebhookCASettle, "webhook-ca-settle", 10*time.Minute, "how long a new CA of the webhook is published before a certificate of it is served")
	flags.StringVar(&settings.MetricsAddress, "metrics-address", ":8080", "where /metrics, /healthz and /readyz are served")
	flags.BoolVar(&settings.MetricsAuth, "metrics-auth", false, "serve these over TLS, and /metrics only to who may get it, as nonResourceURLs of a ClusterRole; asks by TokenReview and SubjectAccessReview")
	flags.BoolVar(&settings.Page, "page", false, "serve a read-only web page of how things stand on the same address, as /page: to localhost alone, or with --metrics-auth to who may get that")
	flags.StringVar(&settings.ClusterName, "cluster-name", "", "the name of the cluster, which the web page shows in its header and title")
	flags.BoolVar(&settings.LeaderElect, "leader-elect", true, "let only one of several replicas write")
	flags.StringVar(&settings.LogFormat, "log-format", "json", "json or console")
	flags.StringVar(&settings.LogLevel, "log-level", "info", "debug, info, warn or error")
	flags.IntVar(&settings.Workers, "workers", 32, "objects that each module writes at once")
	offerValues(command, "log-format", "json", "console")
	offerValues(command, "log-level", "debug", "info", "warn", "error")
	return command
}
