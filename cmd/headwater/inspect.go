package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/inspect/reported"
	"github.com/headwater-k8s/headwater/internal/output"
)

// errChanges makes plan exit 2: the configuration would change something.
var errChanges = errors.New("there would be changes")

// inspection is the common part of the commands that read a cluster without the
// service.
type inspection struct {
	command *cobra.Command
	cluster *genericclioptions.ConfigFlags
	options inspect.Options
	output  *output.Options
}

// newConnection returns an inspection for commands that need no configuration.
func newConnection(command *cobra.Command) *inspection {
	in := &inspection{command: command, options: inspect.Options{
		UserAgent: "headwater-cli/" + app.Version,
		Warn:      func(text string) { _, _ = fmt.Fprintln(command.ErrOrStderr(), "headwater: warning:", text) },
	}}
	in.cluster = addCluster(command)
	in.completeContexts()
	command.PreRun = func(*cobra.Command, []string) { in.options.Kubeconfig = kubeconfigFrom(in.cluster) }
	return in
}

func newInspection(command *cobra.Command) *inspection {
	in := newReading(command)
	command.Flags().StringVar(&in.options.ConfigFile, "config", "", "the configuration file (default: key "+config.ConfigMapKey+" of ConfigMap "+config.ConfigMapName+" in Headwater's namespace)")
	return in
}

// newReading returns an inspection for commands that read what the service reports.
func newReading(command *cobra.Command) *inspection {
	in := newConnection(command)
	flags := command.Flags()
	addOwnNamespace(flags, &in.options.Own)
	in.completeNamespaces("headwater-namespace")
	in.output = addOutput(command)
	flags.BoolVar(&in.output.NoHeaders, "no-headers", false, "do not print the headers of tables")
	return in
}

// show prints the result of find in the requested format.
func (in *inspection) show(find func(context.Context, inspect.Options) (output.Printable, error)) error {
	found, err := find(in.command.Context(), in.options)
	if err != nil {
		return err
	}
	return in.output.Print(in.command.OutOrStdout(), found)
}

func planCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "plan",
		Example: `  headwater plan --config headwater.yaml
  headwater plan --config headwater.yaml -o json`,
		Short: "Show what a configuration would create, update, recreate and delete, and why",
		Long: `Show what a configuration would create, update, recreate, delete and leave
alone, and why. The command writes nothing.

Two actions write nothing but need your attention. Hold waits until its cause is
fixed or you run "headwater approve". Refuse waits until you fix its cause.

Exits 0 if nothing would change, 2 if something would change, and 1 on failure.`,
		Args: noArguments,
	}
	in := newInspection(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		var plan inspect.Plan
		err := in.open(func(ctx context.Context, i *inspect.Inspector) (_ output.Printable, err error) {
			plan, err = i.Plan(ctx)
			return plan, err
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
		Use: "approve [RULE]",
		Example: `  headwater approve blogsecret --dry-run
  headwater approve blogsecret
  headwater approve --configuration 31f0c5cbd2ab4f41`,
		Short: "Approve what is held: many deletions at once, an emptied source, a configuration without rules",
		Long: `Approve what a rule is holding: the deletion of more clones at once than
maxDeleteFraction allows, or emptying clones because their source was
emptied.

You approve what the RuleStatus says is held: at most this number of deletions,
and the source in this version. The command reads no Secret. It stores the
approval, with your name, in the ConfigMap headwater-approvals in Headwater's
namespace. Headwater removes it some seconds after no deletion is due any more, or
the source has changed. An approval of deletions expires after one hour. Headwater
records an Event with the reason Approved when it uses the approval.

With --configuration, approve the configuration with that revision, which is held
because it removes rules. The approval expires after one hour.`,
		Args: optionalArgument,
	}
	in := newReading(command)
	in.completeRules(func(rule config.Rule) bool { return rule.Sync != nil })
	dryRun := command.Flags().Bool("dry-run", false, "only show what would be approved")
	revision := command.Flags().String("configuration", "", "approve the held configuration with this revision")
	command.RunE = func(command *cobra.Command, args []string) error {
		check := oneArgument
		if *revision != "" {
			check = noArguments
		}
		if err := check(command, args); err != nil {
			return err
		}
		return in.show(func(ctx context.Context, options inspect.Options) (output.Printable, error) {
			reader, err := reported.Open(ctx, options)
			switch {
			case err != nil:
				return nil, err
			case *revision != "":
				return reader.ApproveConfiguration(ctx, *revision, *dryRun)
			}
			return reader.Approve(ctx, args[0], *dryRun)
		})
	}
	return command
}

// objectCommand adds to command that it prints the result of answer for the one
// object that its arguments name, in the namespace of --namespace unless they name one.
func objectCommand[P output.Printable](command *cobra.Command, kinds []namedKind, answer func(context.Context, inspect.Options, string) (P, error)) *cobra.Command {
	command.Args, command.Long = oneObject, command.Long+aboutPermissions
	in := newInspection(command)
	addNamespace(command, in.cluster)
	in.completeNamespaces("namespace")
	in.completeObjects(kinds)
	command.RunE = func(_ *cobra.Command, args []string) error {
		return in.show(func(ctx context.Context, options inspect.Options) (output.Printable, error) {
			return answer(ctx, options, strings.Join(args, "/"))
		})
	}
	return command
}

func whoCanEditCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "who-can-edit RULE",
		Example: `  headwater who-can-edit blogsecret`,
		Short:   "List who may change the source of a rule, and why",
		Long: `List who may change the source of a rule, and why: users and groups that the
rule allows, holders of a ClusterRole that it allows, holders of the verb override
(also by a wildcard), and Headwater itself.

It also lists everybody that RBAC lets act as one of them: who may impersonate them,
get a token of their service account, run pods as it or commands in its pods, or bind
a ClusterRole that exempts; and who may change the rule or Headwater's records. It
leaves out what the policy headwater-guard closes, if that is in force.

Requires permission to list ClusterRoles, Roles and their bindings.`,
		Args: oneArgument,
	}
	in := newInspection(command)
	in.completeRules(func(rule config.Rule) bool { return rule.Protect != nil })
	command.RunE = func(_ *cobra.Command, args []string) error {
		return in.show(func(ctx context.Context, options inspect.Options) (output.Printable, error) {
			return inspect.WhoCanEdit(ctx, options, args[0])
		})
	}
	return command
}

func explainCommand() *cobra.Command {
	return objectCommand(&cobra.Command{
		Use: "explain KIND/NAME",
		Example: `  headwater explain deploy/web -n team-a
  headwater explain pod web-0 -o yaml`,
		Short: "Explain what a workload or pod consumes, what a change would do, and why",
		Long: `Explain what a workload or pod consumes and how, which rule or annotation
reloads it, what a change would do and why, and whether it runs the current data.

KIND is the kind of a workload, or Pod; short names work. ` + aboutNames + `

If a restart is due but postponed, the output shows why and until when: a window, minInterval,
maxRestartsPerHour or a rollout that is already in progress. It does not show that
too many other workloads are rolling out.`,
	}, workloadKinds, inspect.Explain)
}

// aboutPermissions is the end of the help of explain and consumers.
const aboutPermissions = `

Without permission to read the cluster, the command reads the object's namespace
alone. ClusterRole view there is enough. The output says what you may not read.`

// aboutNames is the part of the help that says how to name an object.
const aboutNames = `The namespace is that
of --namespace, by default that of the kubeconfig's context. KIND NAME and
KIND/NAMESPACE/NAME work, too.`

func consumersCommand() *cobra.Command {
	everywhere := false
	command := objectCommand(&cobra.Command{
		Use: "consumers KIND/NAME",
		Example: `  headwater consumers secret/blogsecret -n platform
  headwater consumers cm/settings -n team-a -o json`,
		Short: "List the consumers of a Secret or ConfigMap, and what a change would do to each",
		Long: `List the workloads that consume a Secret or ConfigMap, and pods that consume it
without a pod template; what a change would do to each; and whether each runs the
current data. For a source, the list includes the consumers of its clones.

KIND is Secret or ConfigMap; short names work. ` + aboutNames,
	}, objectKinds, func(ctx context.Context, options inspect.Options, object string) (inspect.Consumers, error) {
		return inspect.FindConsumers(ctx, options, object, everywhere)
	})
	command.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "fail if you may not read every namespace, instead of searching the object's namespace alone")
	return command
}
