package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs with OIDC and other plugins

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/kube"
)

const (
	environmentPrefix = "HEADWATER"

	aboutEnvironment = `You can set every flag of every command by an environment variable instead:
HEADWATER_CONFIG sets --config, HEADWATER_LOG_LEVEL sets --log-level, and so on.
A flag overrides its variable. An empty variable counts as not set.`
)

func addKubeconfig(flags *pflag.FlagSet, kubeconfig *kube.Kubeconfig) {
	flags.StringVar(&kubeconfig.File, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)")
	flags.StringVar(&kubeconfig.Context, "context", "", "context of the kubeconfig (default: its current context)")
}

// addCluster adds kubectl's flags that say how to reach a cluster. kubeconfig is valid
// once the flags are parsed. The help shows only the common flags.
func addCluster(command *cobra.Command) (kubeconfig func() kube.Kubeconfig) {
	cluster := genericclioptions.NewConfigFlags(false)
	cluster.CacheDir = nil  // no command caches discovery
	cluster.Namespace = nil // a rule is in no namespace
	cluster.AddFlags(command.Flags())
	for _, name := range []string{
		"as-uid", "as-user-extra", "certificate-authority", "client-certificate", "client-key", "cluster", "disable-compression",
		"insecure-skip-tls-verify", "proxy-url", "server", "tls-server-name", "token", "user",
	} {
		if flag := command.Flags().Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
	return func() kube.Kubeconfig {
		return kube.Kubeconfig{File: *cluster.KubeConfig, Context: *cluster.Context, Loader: cluster.ToRawKubeConfigLoader()}
	}
}

func addOutput(command *cobra.Command) *inspect.Format {
	format := inspect.Table
	command.Flags().VarP(&format, "output", "o", "output format: table, json or yaml")
	offerValues(command, "output", inspect.Formats...)
	return &format
}

// dashes replaces dashes by underscores, for names of environment variables.
var dashes = strings.NewReplacer("-", "_")

// readEnvironment sets every flag that was not passed from its environment
// variable, such as HEADWATER_LOG_LEVEL for --log-level. It validates the value like
// a passed one. An empty variable counts as not set.
func readEnvironment(flags *pflag.FlagSet) error {
	environment := viper.New()
	environment.SetEnvPrefix(environmentPrefix)
	environment.SetEnvKeyReplacer(dashes)
	environment.AutomaticEnv()
	var errs []error
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed || !environment.IsSet(flag.Name) {
			return
		}
		value := environment.GetString(flag.Name)
		if err := flags.Set(flag.Name, value); err != nil {
			variable := environmentPrefix + "_" + strings.ToUpper(dashes.Replace(flag.Name))
			errs = append(errs, fmt.Errorf("%s=%q: %s", variable, value, expectedValue(err)))
		}
	})
	return errors.Join(errs...)
}

// wanted says what the value of a flag must be, of which err says that it is not.
func expectedValue(err error) string {
	invalid := (*pflag.InvalidValueError)(nil)
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	switch invalid.GetFlag().Value.Type() {
	case "bool":
		return "use true or false"
	case "duration":
		return "a duration needs a unit, such as 15s"
	case "int":
		return "use a whole number"
	default:
		return invalid.Unwrap().Error()
	}
}
