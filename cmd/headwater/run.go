package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/viper"

	"github.com/headwater-k8s/headwater/internal/app"
)

func runCommand() *cobra.Command {
	settings := viper.New()
	command := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Run the service",
		Long: `Run the service until SIGTERM or SIGINT.

Every flag can also be given as an environment variable: --log-level is
HEADWATER_LOG_LEVEL, and so on; a flag wins over its variable.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := settings.BindPFlags(command.Flags()); err != nil {
				return err
			}
			return app.Run(command.Context(), readSettings(settings))
		},
	}
	flags := command.Flags()
	flags.String("config", "", "the configuration file; it is watched, and a change takes effect at once")
	flags.String("kubeconfig", "", "how to reach the cluster (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)")
	flags.String("namespace", "headwater-system", "Headwater's own namespace")
	flags.String("webhook-url", "", "where the API server reaches the webhook, when not through the Service headwater-webhook; needed outside a cluster")
	flags.String("webhook-address", ":9443", "where the webhook listens")
	flags.Duration("webhook-drain", 15*time.Second, "how long the webhook goes on serving once told to stop; at least 10s less than the pod's terminationGracePeriodSeconds")
	flags.Duration("webhook-ca-settle", 10*time.Minute, "how long a new CA of the webhook is published before a certificate of it is served")
	flags.String("metrics-address", ":8080", "where /metrics, /healthz and /readyz are served")
	flags.Bool("metrics-auth", false, "serve these over TLS, and /metrics only to who may get it, as nonResourceURLs of a ClusterRole; asks by TokenReview and SubjectAccessReview")
	flags.Bool("page", false, "serve a read-only web page of how things stand on the same address, as /page; with --metrics-auth to who may get that")
	flags.Bool("leader-elect", true, "let only one of several replicas write")
	flags.String("log-format", "json", "json or console")
	flags.String("log-level", "info", "debug, info, warn or error")
	flags.Int("workers", 32, "objects that each module writes at once")
	completes(command, "log-format", "json", "console")
	completes(command, "log-level", "debug", "info", "warn", "error")
	settings.SetEnvPrefix("HEADWATER")
	settings.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	settings.AutomaticEnv()
	return command
}

func readSettings(v *viper.Viper) app.Settings {
	return app.Settings{
		ConfigFile:      v.GetString("config"),
		Kubeconfig:      v.GetString("kubeconfig"),
		Namespace:       v.GetString("namespace"),
		WebhookURL:      v.GetString("webhook-url"),
		WebhookAddress:  v.GetString("webhook-address"),
		WebhookDrain:    v.GetDuration("webhook-drain"),
		WebhookCASettle: v.GetDuration("webhook-ca-settle"),
		MetricsAddress:  v.GetString("metrics-address"),
		MetricsAuth:     v.GetBool("metrics-auth"),
		Page:            v.GetBool("page"),
		LeaderElect:     v.GetBool("leader-elect"),
		LogFormat:       v.GetString("log-format"),
		LogLevel:        v.GetString("log-level"),
		Workers:         v.GetInt("workers"),
	}
}
