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
	"golang.org/x/term"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/inspect/reported"
	"github.com/headwater-k8s/headwater/internal/output"
)

// errAttention makes status exit 2: something needs attention.
var errAttention = errors.New("something needs attention")

// defaultWait is how long status waits without --timeout.
const defaultWait = 5 * time.Minute

const aboutStatus = `Show the state of each rule, or of one rule: whether it is ready and why not, how
many clones are in sync, whether the rule protects its sources, and how far a
delivery is.

The command reads RuleStatuses, which the running service writes within some
seconds of a change. It requires permission to get and list them, as in ClusterRole
headwater-view.

With --survey, the command looks at the cluster itself: it compares every clone with
its source, and names each that is not in sync. Clones with the same problem are
shown together. It requires permission to list and watch Secrets, ConfigMaps and
namespaces, and to list Events, as in ClusterRole headwater-inspect. The flags
--config, --target-namespace and --watch imply --survey, and so does a cluster
without the CustomResourceDefinition of RuleStatuses.

Retained clones are counted separately. They stayed, as their rule says, after
the rule was removed from the configuration, stopped selecting their namespace,
or lost its source. Headwater no longer keeps them in sync. They need no
attention.

Exits 0 if every rule is ready. Exits 2 if something needs attention: a clone that
is not in sync, a rule without a source, a delivery that is not done, no leader, a
protection that is not verified, or a target namespace that does not exist. Exits 1
on failure.

With --wait, the command waits until nothing needs attention, prints on stderr
what it waits for, and exits 2 after --timeout.

With --watch, a terminal shows only the latest state. Other outputs get the state
again after each change; with -o json, as one line.`

// statusFlags are the flags of status, without the common ones.
type statusFlags struct {
	scope               inspect.Scope
	survey, watch, wait bool
	timeout             time.Duration
}

func statusCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "status [RULE]",
		Short: "Show the state of each rule, or of one rule",
		Long:  aboutStatus,
		Example: `  headwater status
  headwater status blogsecret --survey --target-namespace 'payments-*'
  headwater status --wait --timeout 2m`,
		Args: optionalArgument,
	}
	in := newInspection(command)
	in.completeRules(func(config.Rule) bool { return true })
	var asked statusFlags
	flags := command.Flags()
	flags.BoolVar(&asked.survey, "survey", false, "look at the cluster itself, not at RuleStatuses")
	flags.BoolVarP(&asked.watch, "watch", "w", false, "show the state continuously until interrupted")
	flags.BoolVar(&asked.wait, "wait", false, "wait until every rule is ready and nothing needs attention")
	flags.DurationVar(&asked.timeout, "timeout", defaultWait, "how long --wait waits; 0s means no limit")
	flags.StringSliceVar(&asked.scope.Namespaces, "target-namespace", nil, "only clones in these namespaces; names or globs, repeatable")
	in.completeNamespaces("target-namespace")
	command.MarkFlagsMutuallyExclusive("watch", "wait")
	command.RunE = func(command *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if len(args) > 0 {
			asked.scope.Rule = args[0]
		}
		if err := asked.scope.Validate(); err != nil {
			return seeHelp(command, err)
		}
		return in.status(ctx, asked)
	}
	return command
}

// status prints the state that the service reported, or that of the cluster itself.
func (in *inspection) status(ctx context.Context, asked statusFlags) error {
	if !asked.survey && !asked.watch && len(asked.scope.Namespaces) == 0 && in.options.ConfigFile == "" {
		err := in.reported(ctx, asked)
		if !errors.Is(err, reported.ErrNotInstalled) {
			return err
		}
		in.options.Warn(err.Error() + "; looking at the cluster itself")
	}
	return in.survey(ctx, asked)
}

func (in *inspection) reported(ctx context.Context, asked statusFlags) error {
	reader, err := reported.Open(ctx, in.options)
	if err != nil {
		return err
	}
	var report reported.Report
	if asked.wait {
		report, err = reader.Wait(ctx, asked.scope.Rule, asked.timeout, in.command.ErrOrStderr())
	} else {
		report, err = reader.Read(ctx, asked.scope.Rule)
	}
	if err != nil {
		return err
	}
	return in.finish(ctx, asked, report, report.Attention)
}

// survey prints the state once, or until --watch or --wait ends.
func (in *inspection) survey(ctx context.Context, asked statusFlags) error {
	inspector, err := inspect.Open(ctx, in.options)
	if err != nil {
		return err
	}
	if asked.watch {
		return inspector.Watch(ctx, asked.scope, in.command.OutOrStdout(), *in.output, term.IsTerminal(int(os.Stdout.Fd())))
	}
	var status inspect.Status
	if asked.wait {
		status, err = inspector.Wait(ctx, asked.scope, asked.timeout, in.command.ErrOrStderr())
	} else {
		status, err = inspector.Status(ctx, asked.scope)
	}
	if err != nil {
		return err
	}
	return in.finish(ctx, asked, status, status.Attention)
}

// finish prints state and returns an error if something needs attention.
func (in *inspection) finish(ctx context.Context, asked statusFlags, state output.Printable, attention []string) error {
	if err := in.output.Print(in.command.OutOrStdout(), state); err != nil {
		return err
	}
	text := strings.Join(attention, "; ")
	switch {
	case len(attention) == 0:
		return nil
	case asked.wait && ctx.Err() != nil:
		return errors.New("interrupted while waiting for: " + text)
	case asked.wait:
		_, _ = fmt.Fprintf(in.command.ErrOrStderr(), "headwater: not in sync after %s; still waiting for: %s\n", asked.timeout, text)
	}
	return errAttention
}
