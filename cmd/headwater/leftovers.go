package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// aboutLeftovers is what the help of release and prune have in common.
const aboutLeftovers = `

It refuses a rule that the configuration has. A terminal asks before anything is
done; elsewhere pass --yes.

The running service does it, also where rules protect clones: your request is
kept, with your name, in the ConfigMap headwater-approvals of Headwater's
namespace, as an approval is, and needs the same permission. It is bound to the
clones as they were when they were shown: one that is changed after that is left
alone. With --as-of, which --dry-run prints, it is bound to those of the dry run.
The service records an Event, Approved, and drops the request after an hour, or
when the rule is in the configuration again.`

func releaseCommand() *cobra.Command {
	return leftoversCommand(plan.ReleaseClones, &cobra.Command{
		Use:   "release RULE",
		Short: "Take Headwater's marks off the clones of a rule that no longer exists; the objects stay",
		Long: `Take Headwater's labels and annotations off the clones of a rule that is no longer
in the configuration. The objects stay as they are and are nobody's: Headwater
neither counts nor protects them any more, and a new rule that would clone to
their names treats them by its onConflict.` + aboutLeftovers,
		Example: `  headwater release old-rule --dry-run
  headwater release old-rule --yes`,
	})
}

func pruneCommand() *cobra.Command {
	return leftoversCommand(plan.PruneClones, &cobra.Command{
		Use:   "prune RULE",
		Short: "Delete the clones of a rule that no longer exists",
		Long:  `Delete the clones of a rule that is no longer in the configuration.` + aboutLeftovers,
		Example: `  headwater prune old-rule --dry-run
  headwater prune old-rule --yes --as-of Secret=48151`,
	})
}

// leftoverFlags are those of release and prune beside the common ones.
type leftoverFlags struct {
	dryRun, yes bool
	asOf        string
	timeout     time.Duration
}

func leftoversCommand(fate plan.LeftoverFate, command *cobra.Command) *cobra.Command {
	command.Args = oneArgument
	in := newInspection(command)
	var asked leftoverFlags
	flags := command.Flags()
	flags.BoolVar(&asked.dryRun, "dry-run", false, "only show which clones it would be")
	flags.BoolVar(&asked.yes, "yes", false, "do not ask")
	flags.StringVar(&asked.asOf, "as-of", "", "only clones that were not changed since a dry run, which printed this")
	flags.DurationVar(&asked.timeout, "timeout", time.Minute, "how long to wait until the service has done it")
	command.RunE = func(command *cobra.Command, args []string) error {
		return in.show(func(ctx context.Context, options inspect.Options) (inspect.Printable, error) {
			inspector, err := inspect.Open(ctx, options)
			if err != nil {
				return nil, err
			}
			left, err := inspector.Leftovers(args[0], fate, asked.asOf)
			left.DryRun = asked.dryRun
			if err != nil || asked.dryRun {
				return left, err
			}
			if err := confirm(command, left, asked.yes); err != nil {
				return nil, err
			}
			return inspector.Perform(ctx, left, asked.timeout)
		})
	}
	return command
}

// confirm asks at a terminal whether left is meant; it fails when it is not, and
// where nobody can be asked.
func confirm(command *cobra.Command, left inspect.Leftovers, yes bool) error {
	if yes {
		return nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return errors.New("the standard input is no terminal to ask at; look with --dry-run, then pass --yes")
	}
	return askWhether(command.InOrStdin(), command.ErrOrStderr(), left)
}

// askWhether writes the question to out and reads the answer from in.
func askWhether(in io.Reader, out io.Writer, left inspect.Leftovers) error {
	_, _ = fmt.Fprint(out, left.Question())
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}
