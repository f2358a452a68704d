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
)

// errAttention makes status exit 2: something needs attention.
var errAttention = errors.New("something needs attention")

// defaultWait is how long status waits without --timeout.
const defaultWait = 5 * time.Minute

const aboutStatus = `Show the state of the clones of each rule, or of one rule: how many are in sync,
which are not and why, and whether the rules protect their sources. Clones with
the same problem are shown together.

Retained clones are counted separately. They stayed, as their rule says, after
the rule was removed from the configuration, stopped selecting their namespace,
or lost its source. Headwater no longer keeps them in sync. They need no
attention.

Exits 0 if every clone is in sync. Exits 2 if something needs attention: a clone
in any other state, a rule without a source, no leader, a protection that is not
verified, or a target namespace that does not exist. Exits 1 on failure.

With --wait, the command waits until nothing needs attention, prints on stderr
what it waits for, and exits 2 after --timeout.

With --watch, a terminal shows only the latest state. Other outputs get the state
again after each change; with -o json, as one line.

The command reads the cluster, not the running service. It requires permission to
list and watch Secrets, ConfigMaps and namespaces, and to list Events, which
contain why clones fail and how long the last change took.`

// statusFlags are the flags of status, without the common ones.
type statusFlags struct {
	scope       inspect.Scope
	watch, wait bool
	timeout     time.Duration
}

func statusCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "status [RULE]",
		Short: "Show the state of the clones of each rule, or of one rule",
		Long:  aboutStatus,
		Example: `  headwater status
  headwater status blogsecret --target-namespace 'payments-*'
  headwater status --wait --timeout 2m`,
		Args:              optionalArgument,
		ValidArgsFunction: offerRules(func(rule config.Rule) bool { return rule.Sync != nil || rule.Protect != nil }),
	}
	in := newInspection(command)
	var asked statusFlags
	flags := command.Flags()
	flags.BoolVarP(&asked.watch, "watch", "w", false, "show the state continuously until interrupted")
	flags.BoolVar(&asked.wait, "wait", false, "wait until every clone is in sync and nothing needs attention")
	flags.DurationVar(&asked.timeout, "timeout", defaultWait, "how long --wait waits; 0s means no limit")
	flags.StringSliceVar(&asked.scope.Namespaces, "target-namespace", nil, "only clones in these namespaces; names or globs, repeatable")
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
		inspector, err := inspect.Open(ctx, in.options)
		if err != nil {
			return err
		}
		return in.status(ctx, inspector, asked)
	}
	return command
}

// status prints the state once, or until --watch or --wait ends.
func (in *inspection) status(ctx context.Context, inspector *inspect.Inspector, asked statusFlags) error {
	out, progress := in.command.OutOrStdout(), in.command.ErrOrStderr()
	if asked.watch {
		return inspector.Watch(ctx, asked.scope, out, *in.output, term.IsTerminal(int(os.Stdout.Fd())))
	}
	var status inspect.Status
	var err error
	if asked.wait {
		status, err = inspector.Wait(ctx, asked.scope, asked.timeout, progress)
	} else {
		status, err = inspector.Status(ctx, asked.scope)
	}
	if err != nil {
		return err
	}
	if err := in.output.Print(out, status); err != nil {
		return err
	}
	switch {
	case len(status.Attention) == 0:
		return nil
	case asked.wait && ctx.Err() != nil:
		return errors.New("interrupted while waiting for: " + strings.Join(status.Attention, "; "))
	case asked.wait:
		_, _ = fmt.Fprintf(progress, "headwater: not in sync after %s; still waiting for: %s\n", asked.timeout, strings.Join(status.Attention, "; "))
	}
	return errAttention
}
