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

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/output"
)

const (
	environmentPrefix = "HEADWATER_"

	aboutEnvironment = `You can set every flag of every command by an environment variable instead:
HEADWATER_CONFIG sets --config, HEADWATER_LOG_LEVEL sets --log-level, and so on.
HEADWATER_NAMESPACE sets --headwater-namespace, and no variable sets --namespace.
A flag overrides its variable. An empty variable counts as not set.`
)

func addKubeconfig(flags *pflag.FlagSet, kubeconfig *kube.Kubeconfig) {
	flags.StringVar(&kubeconfig.File, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)")
	flags.StringVar(&kubeconfig.Context, "context", "", "context of the kubeconfig (default: its current context)")
}

// addCluster adds kubectl's flags that say how to reach a cluster, without
// --namespace. The help shows only the common flags.
func addCluster(command *cobra.Command) *genericclioptions.ConfigFlags {
	cluster := genericclioptions.NewConfigFlags(false)
	cluster.CacheDir = nil // no command caches discovery
	namespace := cluster.Namespace
	cluster.Namespace = nil
	cluster.AddFlags(command.Flags())
	cluster.Namespace = namespace
	for _, name := range []string{
		"as-uid", "as-user-extra", "certificate-authority", "client-certificate", "client-key", "cluster", "disable-compression",
		"insecure-skip-tls-verify", "proxy-url", "server", "tls-server-name", "token", "user",
	} {
		if flag := command.Flags().Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
	return cluster
}

// kubeconfigFrom returns what cluster says. It is valid once the flags are parsed.
func kubeconfigFrom(cluster *genericclioptions.ConfigFlags) kube.Kubeconfig {
	return kube.Kubeconfig{File: *cluster.KubeConfig, Context: *cluster.Context, Loader: cluster.ToRawKubeConfigLoader()}
}

// addNamespace adds kubectl's flag for the namespace of the object that the command is
// about.
func addNamespace(command *cobra.Command, cluster *genericclioptions.ConfigFlags) {
	command.Flags().StringVarP(cluster.Namespace, "namespace", "n", "", "the namespace of the object (default: that of the kubeconfig's context)")
}

// addOwnNamespace adds the flag for the namespace that Headwater runs in.
func addOwnNamespace(flags *pflag.FlagSet, namespace *string) {
	flags.StringVar(namespace, "headwater-namespace", "headwater-system", "the namespace that Headwater runs in")
}

func addOutput(command *cobra.Command) *output.Options {
	options := &output.Options{Format: output.Table}
	command.Flags().VarP(&options.Format, "output", "o", "output format: "+strings.Join(output.Formats(), ", "))
	offerValues(command, "output", output.Formats()...)
	return options
}

// dashes replaces dashes by underscores, for names of environment variables.
var dashes = strings.NewReplacer("-", "_")

// readEnvironment sets every flag that was not passed from its environment
// variable, such as HEADWATER_LOG_LEVEL for --log-level. It validates the value like
// a passed one. An empty variable counts as not set.
func readEnvironment(flags *pflag.FlagSet) error {
	environment := viper.New()
	environment.AutomaticEnv()
	var errs []error
	flags.VisitAll(func(flag *pflag.Flag) {
		variable := variableOf(flag.Name)
		if flag.Changed || variable == "" || !environment.IsSet(variable) {
			return
		}
		value := environment.GetString(variable)
		if err := flags.Set(flag.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %s", variable, value, expectedValue(err)))
		}
	})
	return errors.Join(errs...)
}

// variableOf returns the name of the environment variable that sets flag. It is empty
// for --namespace: HEADWATER_NAMESPACE is the namespace that Headwater runs in.
func variableOf(flag string) string {
	if flag == "namespace" {
		return ""
	}
	return environmentPrefix + strings.ToUpper(dashes.Replace(strings.TrimPrefix(flag, "headwater-")))
}

// expectedValue says what the value of a flag must be, of which err says that it is not.
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

// oneArgument requires the argument that the command's usage names.
func oneArgument(command *cobra.Command, args []string) error {
	_, name, _ := strings.Cut(command.Use, " ")
	name = strings.Trim(name, "[]") // around an optional argument
	switch len(args) {
	case 1:
		return nil
	case 0:
		return seeHelp(command, fmt.Errorf("%s is missing", name))
	default:
		return seeHelp(command, fmt.Errorf("takes one %s, not %d: %s", name, len(args), strings.Join(args, " ")))
	}
}

// oneObject requires the object that the command's usage names, as KIND/NAME or
// KIND NAME.
func oneObject(command *cobra.Command, args []string) error {
	if len(args) == 2 && !strings.Contains(args[0]+args[1], "/") {
		return nil
	}
	return oneArgument(command, args)
}

// optionalArgument accepts at most one argument.
func optionalArgument(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return oneArgument(command, args)
}

func noArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return seeHelp(command, fmt.Errorf("takes no arguments: %s", strings.Join(args, " ")))
}

// flagError explains an error of flag parsing.
func flagError(command *cobra.Command, err error) error {
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		err = fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), expectedValue(err))
	}
	return seeHelp(command, err)
}

func seeHelp(command *cobra.Command, err error) error {
	return fmt.Errorf("%w; see %s --help", err, command.CommandPath())
}
