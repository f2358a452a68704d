package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

// deliveryCommands are the commands about revisions and their delivery.
func deliveryCommands() []*cobra.Command {
	return []*cobra.Command{
		historyCommand(), diffCommand(),
		steerCommand(delivery.Promote, "Let a delivery go on after a stage that needs an approval",
			"The next stage starts when the gate of this one has held for its soak time."),
		steerCommand(delivery.Pause, "Keep a delivery in its stage",
			"A paused delivery does not time out. It still fails if a namespace becomes unhealthy."),
		steerCommand(delivery.Resume, "End a pause, or a rollback to an older revision",
			"The time of the stage counts again from now. After a rollback to an older revision,\nthe clones get the last delivered revision again."),
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
the edit, verdict, stage, and how many clones have it. The rule needs sync.history
or sync.delivery.`,
		Example: "  headwater history app-settings",
		Args:    oneArgument,
	}
	in := newInspection(command)
	in.completeRules(historied)
	source := addSource(command)
	command.RunE = func(_ *cobra.Command, args []string) error {
		return in.open(func(_ context.Context, i *inspect.Inspector) (output.Printable, error) {
			return i.History(args[0], *source)
		})
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

The command stores the request, with your name, in the ConfigMap headwater-approvals
in Headwater's namespace, which requires the same permission as an approval, and
waits until the running service has taken it. Headwater records an Event with the
reason DeliverySteered on the source.`

func steerCommand(verb delivery.Verb, short, long string) *cobra.Command {
	command := &cobra.Command{
		Use:     string(verb) + " RULE",
		Short:   short,
		Long:    short + ".\n\n" + long + aboutSteering,
		Example: "  headwater " + string(verb) + " app-settings",
		Args:    oneArgument,
	}
	steer(command, verb, new(int))
	return command
}

func rollbackCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "rollback RULE",
		Short: "Reject the revision under way, or go back to an older one",
		Long: `Reject the revision that is being delivered: every clone gets the last delivered
one again. With --to, every clone gets that revision, until you edit the source, or
run "headwater resume" or "headwater retry". A rejected revision is not accepted.` + aboutSteering,
		Example: `  headwater rollback app-settings
  headwater rollback app-settings --to 3`,
		Args: oneArgument,
	}
	steer(command, delivery.Rollback, command.Flags().Int("to", 0, "the number of the revision to go back to"))
	return command
}

// steer makes command ask the leader for verb. to is the revision to go back to.
func steer(command *cobra.Command, verb delivery.Verb, to *int) {
	in := newInspection(command)
	in.completeRules(historied)
	source := addSource(command)
	timeout := command.Flags().Duration("timeout", time.Minute, "how long to wait for the service")
	command.RunE = func(_ *cobra.Command, args []string) error {
		if *to < 0 {
			return fmt.Errorf("--to %d is not the number of a revision; see headwater history", *to)
		}
		return in.open(func(ctx context.Context, i *inspect.Inspector) (output.Printable, error) {
			return i.Steer(ctx, args[0], *source, verb, *to, *timeout)
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
