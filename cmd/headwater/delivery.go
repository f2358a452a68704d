package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/inspect/reported"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

// deliveryCommands are the commands about revisions and their delivery.
func deliveryCommands() []*cobra.Command {
	return []*cobra.Command{
		historyCommand(), diffCommand(),
		steerCommand(delivery.Promote, "Let a delivery go on after a stage that needs an approval",
			"The next stage starts when the gate of this one has held for its soak time. The\napproval replaces no evidence: --unproven lets the present stage pass without any,\nand --all ends the delivery: every namespace gets the revision."),
		steerCommand(delivery.Pause, "Keep a delivery in its stage",
			"A paused delivery does not time out. It still fails if a namespace becomes unhealthy."),
		steerCommand(delivery.Resume, "End a pause, or a rollback to an older revision",
			"After a rollback to an older revision, the clones get the last delivered revision again."),
		steerCommand(delivery.Retry, "Deliver a rejected revision again, or go on with a held one",
			"A rejected revision starts with the first stage. Only the newest revision can be\nretried; edit the source to deliver anything else."),
		rollbackCommand(),
	}
}

func historied(rule config.Rule) bool { return rule.Sync != nil && *rule.Sync.History > 0 }

func historyCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "history RULE",
		Short: "List the recorded revisions of a rule's sources, and how far each was delivered",
		Long: `List the recorded revisions of a rule's sources: number, age, field manager of
the edit, verdict, stage, and how many clones have it; with -o wide also what their
consumers showed. The rule needs sync.history or sync.delivery.

The command reads the RuleStatus, which the running service writes within some
seconds of a change. It lists the last 10 revisions of each source, and at most 50.

Exits 2 if no leader confirms it, or nobody knows whether there is one.`,
		Example: "  headwater history app-settings",
		Args:    oneArgument,
	}
	in := newReading(command)
	in.completeRules(historied)
	source := addSource(command)
	command.RunE = func(_ *cobra.Command, args []string) error {
		var history reported.History
		err := in.show(func(ctx context.Context, options inspect.Options) (_ output.Printable, err error) {
			reader, err := reported.Open(ctx, options)
			if err == nil {
				history, err = reader.History(ctx, args[0], *source)
			}
			return history, err
		})
		if err == nil && len(history.Attention()) > 0 {
			return errAttention
		}
		return err
	}
	return command
}

func diffCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "diff RULE [FROM [TO]]",
		Short: "Show which keys differ between two revisions",
		Long: `Show which keys differ between two revisions of a rule's source: by default the
last delivered one and the newest one. Values are shown only for ConfigMaps, and
only with --values.`,
		Example: `  headwater diff app-settings
  headwater diff app-settings 3 5 --values`,
		Args: cobra.RangeArgs(1, 3),
	}
	in := newInspection(command)
	in.completeRules(historied)
	source := addSource(command)
	values := command.Flags().Bool("values", false, "show the values of a ConfigMap")
	command.RunE = func(_ *cobra.Command, args []string) error {
		var numbers [2]int
		for at, text := range args[1:] {
			number, err := strconv.Atoi(text)
			if err != nil || number < 1 {
				return fmt.Errorf("%q is not the number of a revision; see headwater history", text)
			}
			numbers[at] = number
		}
		return in.open(func(_ context.Context, i *inspect.Inspector) (output.Printable, error) {
			return i.Diff(args[0], *source, numbers[0], numbers[1], *values)
		})
	}
	return command
}

const aboutSteering = `

The command reads the RuleStatus of the rule, and no Secret. It stores the request,
with your name, in the ConfigMap headwater-deliveries in Headwater's namespace, which
requires the Role headwater-deliver, and waits for the answer of the running service.
Headwater records an Event with the reason DeliverySteered on the source, also if it
refuses. Nobody verifies the name.

Exits 1 if the service refuses, and 3 if it does not answer in time: the request then
stays stored, and is done within an hour or not at all.`

func steerCommand(verb delivery.Verb, short, long string) *cobra.Command {
	command := &cobra.Command{
		Use:     string(verb) + " RULE",
		Short:   short,
		Long:    short + ".\n\n" + long + aboutSteering,
		Example: "  headwater " + string(verb) + " app-settings",
		Args:    oneArgument,
	}
	asked := &delivery.Request{Verb: verb}
	if verb == delivery.Promote {
		command.Flags().BoolVar(&asked.Unproven, "unproven", false, "let the present stage pass without evidence")
		command.Flags().BoolVar(&asked.All, "all", false, "end the delivery: every namespace gets the revision")
	}
	steer(command, asked)
	return command
}

func rollbackCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "rollback RULE",
		Short: "Reject the revision under way, or go back to an older one",
		Long: `Reject the revision that is being delivered: every clone gets the last delivered
one again. With --to, every clone gets that revision, until you edit the source, or
run "headwater resume" or "headwater retry". Only a revision that was delivered to every
namespace is accepted. The command then asks for confirmation on a terminal; elsewhere
pass --yes.` + aboutSteering,
		Example: `  headwater rollback app-settings
  headwater rollback app-settings --to 3`,
		Args: oneArgument,
	}
	asked := &delivery.Request{Verb: delivery.Rollback}
	command.Flags().IntVar(&asked.To, "to", 0, "the number of the revision to go back to")
	steer(command, asked)
	return command
}

// steer makes command ask the leader for what asked says.
func steer(command *cobra.Command, asked *delivery.Request) {
	in := newReading(command)
	in.completeRules(historied)
	source := addSource(command)
	timeout := command.Flags().Duration("timeout", time.Minute, "how long to wait for the answer of the service")
	dryRun, yes := new(bool), new(bool)
	if asked.Verb == delivery.Rollback {
		command.Flags().BoolVar(dryRun, "dry-run", false, "only show which revision would be affected")
		command.Flags().BoolVar(yes, "yes", false, "do not ask for confirmation")
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		if asked.To < 0 {
			return fmt.Errorf("--to %d is not the number of a revision; see headwater history", asked.To)
		}
		return in.show(func(ctx context.Context, options inspect.Options) (output.Printable, error) {
			reader, err := reported.Open(ctx, options)
			if err != nil {
				return nil, err
			}
			steering, err := reader.Steering(ctx, args[0], *source, *asked)
			steering.DryRun = *dryRun
			if err != nil || *dryRun {
				return steering, err
			}
			if asked.To != 0 {
				if err := confirm(command, steering, *yes); err != nil {
					return nil, err
				}
			}
			return reader.Steer(ctx, steering, *timeout)
		})
	}
}

func addSource(command *cobra.Command) *string {
	return command.Flags().String("source", "", "the name of the source, for a rule that selects several")
}

// open is show for what an Inspector finds.
func (in *inspection) open(find func(context.Context, *inspect.Inspector) (output.Printable, error)) error {
	return in.show(func(ctx context.Context, options inspect.Options) (output.Printable, error) {
		inspector, err := inspect.Open(ctx, options)
		if err != nil {
			return nil, err
		}
		return find(ctx, inspector)
	})
}
