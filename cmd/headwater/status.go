package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/inspect/reported"
)

// errAttention makes status exit 2: something needs attention.
var errAttention = errors.New("something needs attention")

// defaultWait is how long status waits without --timeout.
const defaultWait = 5 * time.Minute

const aboutStatus = `Show the state of each rule, or of one rule: whether it is ready and why not, how
many clones are in sync, whether the rule protects its sources, and how far a
delivery is.

The command reads RuleStatuses, which the running service writes within some
seconds of a change, and the Lease of its leader, without which nothing confirms
them. It requires permission to get and list RuleStatuses, and to get the Lease, as in
ClusterRole headwater-view.

To see what Headwater would do about each clone, look at the cluster itself with
"headwater plan".

Retained clones are counted separately. They stayed, as their rule says, after
the rule was removed from the configuration, stopped selecting their namespace,
or lost its source. Headwater no longer keeps them in sync. They need no
attention.

Exits 0 if every rule is ready. Exits 2 if something needs attention: a clone that
is not in sync, a rule without a source, a delivery that is not done, no leader or
nobody knows whether there is one, a protection that is not verified, or no
RuleStatus at all. Exits 1 on failure.

With --wait, the command waits until nothing needs attention, prints on stderr
what it waits for, and exits 2 after --timeout.`

// statusFlags are the flags of status, without the common ones.
type statusFlags struct {
	rule    string
	wait    bool
	timeout time.Duration
}

func statusCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "status [RULE]",
		Short: "Show the state of each rule, or of one rule",
		Long:  aboutStatus,
		Example: `  headwater status
  headwater status --wait --timeout 2m`,
		Args: optionalArgument,
	}
	in := newReading(command)
	in.completeRules(func(config.Rule) bool { return true })
	var asked statusFlags
	flags := command.Flags()
	flags.BoolVar(&asked.wait, "wait", false, "wait until every rule is ready and nothing needs attention")
	flags.DurationVar(&asked.timeout, "timeout", defaultWait, "how long --wait waits; 0s means no limit")
	command.RunE = func(command *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if len(args) > 0 {
			asked.rule = args[0]
		}
		return in.status(ctx, asked)
	}
	return command
}

// status prints the state that the service reported.
func (in *inspection) status(ctx context.Context, asked statusFlags) error {
	reader, err := reported.Open(ctx, in.options)
	if err != nil {
		return err
	}
	var report reported.Report
	if asked.wait {
		report, err = reader.Wait(ctx, asked.rule, asked.timeout, in.command.ErrOrStderr())
	} else {
		report, err = reader.Read(ctx, asked.rule)
	}
	if err != nil {
		return err
	}
	return in.finish(ctx, asked, report)
}

// finish prints report and returns an error if something needs attention.
func (in *inspection) finish(ctx context.Context, asked statusFlags, report reported.Report) error {
	if err := in.output.Print(in.command.OutOrStdout(), report); err != nil {
		return err
	}
	text := strings.Join(report.Attention, "; ")
	switch {
	case len(report.Attention) == 0:
		return nil
	case asked.wait && ctx.Err() != nil:
		return errors.New("interrupted while waiting for: " + text)
	case asked.wait:
		_, _ = fmt.Fprintf(in.command.ErrOrStderr(), "headwater: not in sync after %s; still waiting for: %s\n", asked.timeout, text)
	}
	return errAttention
}
