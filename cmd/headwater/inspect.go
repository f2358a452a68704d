package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"golang.org/x/term"

	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/inspect"
)

// errChanges makes plan exit 2: there would be changes.
var errChanges = errors.New("there would be changes")

// inspection is what status, plan, approve and who-can-edit have in common:
// they look at a cluster from outside the service.
type inspection struct {
	settings *viper.Viper
	flags    *pflag.FlagSet
}

func newInspection(command *cobra.Command) inspection {
	in := inspection{settings: viper.New(), flags: command.Flags()}
	in.flags.String("config", "", "the configuration file (default: ConfigMap "+inspect.ConfigMapName+" of Headwater's namespace, key "+inspect.ConfigMapKey+")")
	in.flags.String("kubeconfig", "", "how to reach the cluster (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)")
	in.flags.StringP("namespace", "n", "headwater-system", "Headwater's own namespace")
	in.settings.SetEnvPrefix("HEADWATER")
	in.settings.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	in.settings.AutomaticEnv()
	return in
}

func (in inspection) withOutput() inspection {
	in.flags.StringP("output", "o", string(inspect.Table), "table, json or yaml")
	return in
}

// open reads the cluster; what is returned is good until ctx ends.
func (in inspection) open(ctx context.Context) (*inspect.Inspector, error) {
	options, err := in.options()
	if err != nil {
		return nil, err
	}
	return inspect.Open(ctx, options)
}

func (in inspection) options() (inspect.Options, error) {
	if err := in.settings.BindPFlags(in.flags); err != nil {
		return inspect.Options{}, err
	}
	return inspect.Options{
		ConfigFile: in.settings.GetString("config"), Kubeconfig: in.settings.GetString("kubeconfig"),
		Namespace: in.settings.GetString("namespace"), UserAgent: "headwater-cli/" + app.Version,
	}, nil
}

func (in inspection) format() (inspect.Format, error) {
	return inspect.ParseFormat(in.settings.GetString("output"))
}

func statusCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "status",
		Short: "Show how the clones of each rule stand",
		Long: `Show how the clones of each rule stand.

Needs read access to the cluster, not to the running service: list and watch of
Secrets, ConfigMaps and namespaces, and list of Events, which say why clones
fail and how long the last change took.`,
		Args: cobra.NoArgs,
	}
	in := newInspection(command).withOutput()
	command.Flags().BoolP("watch", "w", false, "show the progress of changes until interrupted")
	command.RunE = func(command *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		inspector, err := in.open(ctx)
		if err != nil {
			return err
		}
		if in.settings.GetBool("watch") {
			return inspector.Watch(ctx, command.OutOrStdout(), term.IsTerminal(int(os.Stdout.Fd())))
		}
		format, err := in.format()
		if err != nil {
			return err
		}
		return inspect.Print(command.OutOrStdout(), format, inspector.Status(ctx))
	}
	return command
}

func planCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "plan",
		Short: "Show what a configuration would create, update, recreate and delete, and why",
		Long: `Show what a configuration would create, update, recreate, delete and leave
alone, and why. Nothing is written.

Exits 0 when nothing would change, 2 when something would, 1 when that could
not be found out.`,
		Args: cobra.NoArgs,
	}
	in := newInspection(command).withOutput()
	command.RunE = func(command *cobra.Command, _ []string) error {
		inspector, err := in.open(command.Context())
		if err != nil {
			return err
		}
		format, err := in.format()
		if err != nil {
			return err
		}
		plan := inspector.Plan(command.Context())
		if err := inspect.Print(command.OutOrStdout(), format, plan); err != nil {
			return err
		}
		if plan.Changes() {
			return errChanges
		}
		return nil
	}
	return command
}

func approveCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "approve RULE",
		Short: "Let go on what is held of a rule: the removal of many clones, an emptied source",
		Long: `Let go on what is held of a rule: the removal of more clones at once than
safety.maxDeleteFraction allows, or clones that an emptied source would empty.

Just what is held now is approved: no more removals than there are, and the
source as it is. The approval is kept in the ConfigMap headwater-approvals of
Headwater's namespace, and taken back when it was used.`,
		Args: cobra.ExactArgs(1),
	}
	in := newInspection(command)
	command.Flags().Bool("dry-run", false, "only say what would be approved")
	command.RunE = func(command *cobra.Command, args []string) error {
		inspector, err := in.open(command.Context())
		if err != nil {
			return err
		}
		dryRun := in.settings.GetBool("dry-run")
		approval, err := inspector.Approve(command.Context(), args[0], dryRun)
		if err != nil {
			return err
		}
		verb := "approved"
		if dryRun {
			verb = "would approve"
		}
		if approval.Removals > 0 {
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s: removal of %d clones of rule %s\n", verb, approval.Removals, args[0])
		}
		for source := range approval.Sources {
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s: clones of rule %s are emptied like their source %s\n", verb, args[0], source)
		}
		return err
	}
	return command
}

func whoCanEditCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "who-can-edit RULE",
		Short: "List everybody who may change the source of a rule, and through what",
		Long: `List everybody who may change the source of a rule, and through what: whom the
rule names, who holds a ClusterRole that it names, who holds the verb override,
also by a wildcard, and Headwater itself.

Needs list of ClusterRoles and ClusterRoleBindings.`,
		Args: cobra.ExactArgs(1),
	}
	in := newInspection(command).withOutput()
	command.RunE = func(command *cobra.Command, args []string) error {
		options, err := in.options()
		if err != nil {
			return err
		}
		format, err := in.format()
		if err != nil {
			return err
		}
		editors, err := inspect.WhoCanEdit(command.Context(), options, args[0])
		if err != nil {
			return err
		}
		return inspect.Print(command.OutOrStdout(), format, editors)
	}
	return command
}
