package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/inspect"
)

// errChanges makes plan exit 2: there would be changes.
var errChanges = errors.New("there would be changes")

// inspection is what these commands have in common: they look at a cluster from
// outside the service.
type inspection struct {
	command *cobra.Command
	options inspect.Options
	format  *inspect.Format
}

// newConnection is for commands that need no configuration.
func newConnection(command *cobra.Command) *inspection {
	in := &inspection{command: command, options: inspect.Options{
		UserAgent: "headwater-cli/" + app.Version,
		Warn:      func(text string) { _, _ = fmt.Fprintln(command.ErrOrStderr(), "headwater: warning:", text) },
	}}
	addKubeconfig(command.Flags(), &in.options.Kubeconfig)
	return in
}

func newInspection(command *cobra.Command) *inspection {
	in := newConnection(command)
	flags := command.Flags()
	flags.StringVar(&in.options.ConfigFile, "config", "", "the configuration file (default: ConfigMap "+config.ConfigMapName+" of Headwater's namespace, key "+config.ConfigMapKey+")")
	flags.StringVarP(&in.options.Namespace, "namespace", "n", "headwater-system", "Headwater's own namespace; not the one that kubectl would look at")
	in.format = addOutput(command)
	return in
}

// show prints what find finds out, in the form that is asked for.
func (in *inspection) show(find func(context.Context, inspect.Options) (inspect.Printable, error)) error {
	found, err := find(in.command.Context(), in.options)
	if err != nil {
		return err
	}
	return inspect.Print(in.command.OutOrStdout(), *in.format, found)
}

func planCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "plan",
		Short: "Show what a configuration would create, update, recreate and delete, and why",
		Long: `Show what a configuration would create, update, recreate, delete and leave
alone, and why. Nothing is written.

What it would leave alone and should not stay so has the action Hold, until its
cause is gone or "approve" says that it is meant; or Refuse, until a person
removes the cause.

Exits 0 when nothing would change, 2 when something would, 1 when that could
not be found out.`,
		Args: noArguments,
	}
	in := newInspection(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		var plan inspect.Plan
		err := in.show(func(ctx context.Context, options inspect.Options) (inspect.Printable, error) {
			inspector, err := inspect.Open(ctx, options)
			if err != nil {
				return nil, err
			}
			plan = inspector.Plan(ctx)
			return plan, nil
		})
		if err == nil && plan.Changes() {
			return errChanges
		}
		return err
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
source as it is. The approval is kept, with your name, in the ConfigMap
headwater-approvals of Headwater's namespace, and taken back some seconds after
no removal is due any more, or the source has changed; removals have to begin
within the hour. Headwater records an Event, Approved, when one lets it go on.`,
		Args:              oneArgument,
		ValidArgsFunction: offerRules(func(rule config.Rule) bool { return rule.Sync != nil }),
	}
	in := newInspection(command)
	dryRun := command.Flags().Bool("dry-run", false, "only say what would be approved")
	command.RunE = func(_ *cobra.Command, args []string) error {
		return in.show(func(ctx context.Context, options inspect.Options) (inspect.Printable, error) {
			inspector, err := inspect.Open(ctx, options)
			if err != nil {
				return nil, err
			}
			return inspector.Approve(ctx, args[0], *dryRun)
		})
	}
	return command
}

// ask is a command that prints what answer finds out about its one argument.
func objectCommand[P inspect.Printable](command *cobra.Command, answer func(context.Context, inspect.Options, string) (P, error)) *cobra.Command {
	command.Args = oneArgument
	in := newInspection(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		return in.show(func(ctx context.Context, options inspect.Options) (inspect.Printable, error) {
			return answer(ctx, options, args[0])
		})
	}
	return command
}

func whoCanEditCommand() *cobra.Command {
	return objectCommand(&cobra.Command{
		Use:   "who-can-edit RULE",
		Short: "List everybody who may change the source of a rule, and through what",
		Long: `List everybody who may change the source of a rule, and through what: whom the
rule names, who holds a ClusterRole that it names, who holds the verb override,
also by a wildcard, and Headwater itself.

Needs list of ClusterRoles and ClusterRoleBindings.`,
		ValidArgsFunction: offerRules(func(rule config.Rule) bool { return rule.Protect != nil }),
	}, inspect.WhoCanEdit)
}

func explainCommand() *cobra.Command {
	return objectCommand(&cobra.Command{
		Use:   "explain KIND/NAMESPACE/NAME",
		Short: "Say what a workload or pod consumes, what a change of it would do, and why",
		Long: `Say what a workload or pod consumes and how, which rule or annotation has it
reloaded, what a change would do and why, and whether it runs the data of now.

KIND is that of a workload or Pod, also in short: deploy/team-a/web. So is
NAMESPACE/KIND/NAME understood. A restart that is due waits for a window, the
interval, the breaker or a rollout of the owner, and until when, is told; that
too many others are rolled out is not.`,
	}, inspect.Explain)
}

func consumersCommand() *cobra.Command {
	return objectCommand(&cobra.Command{
		Use:   "consumers KIND/NAMESPACE/NAME",
		Short: "List who consumes a Secret or ConfigMap, and what a change of it would do to each",
		Long: `List the workloads that consume a Secret or ConfigMap, and the pods that do by no
pod template, what a change would do to each, and whether each runs the data of
now. Of a source, those of its clones are among them.`,
	}, inspect.FindConsumers)
}
