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
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// aboutLeftovers is the common part of the help of release and prune.
const aboutLeftovers = `

The command fails if the configuration contains the rule%s. It asks for confirmation
on a terminal; elsewhere pass --yes.

The running service carries out the request, so it works even if rules protect the
clones. The command stores the request, with your name, in the ConfigMap
headwater-approvals in Headwater's namespace. This requires the same permission as
an approval. The request applies to the clones in the version that you were shown,
or with --as-of in the version of an earlier --dry-run; clones that changed since
are left alone. The service records an Event with the reason Approved. It drops
the request after one hour, or when no such clone is left.`

func releaseCommand() *cobra.Command {
	return leftoversCommand(plan.ReleaseClones, &cobra.Command{
		Use:   "release RULE",
		Short: "Remove Headwater's marks from the clones of a rule that no longer exists; the objects stay",
		Long: `Remove Headwater's labels and annotations from the clones of a rule that is no
longer in the configuration. The objects stay, and Headwater no longer counts or
protects them. If a new rule clones to the same names, its onConflict applies.` + fmt.Sprintf(aboutLeftovers, ""),
		Example: `  headwater release old-rule --dry-run
  headwater release old-rule --yes`,
	})
}

func pruneCommand() *cobra.Command {
	return leftoversCommand(plan.PruneClones, &cobra.Command{
		Use:   "prune RULE",
		Short: "Delete the clones of a rule that no longer exists",
		Long: `Delete the clones of a rule that is no longer in the configuration, or those that the
rule does not want and that do not name their place, because a build from before
headwater.dev/target wrote them: Headwater cannot tell them from copies.` +
			fmt.Sprintf(aboutLeftovers, " and none of these exists"),
		Example: `  headwater prune old-rule --dry-run
  headwater prune old-rule --yes --as-of Secret=48151`,
	})
}

// leftoverFlags are the flags of release and prune, without the common ones.
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
	flags.BoolVar(&asked.dryRun, "dry-run", false, "only show which clones would be affected")
	flags.BoolVar(&asked.yes, "yes", false, "do not ask for confirmation")
	flags.StringVar(&asked.asOf, "as-of", "", "only clones that did not change since the dry run that printed this value")
	flags.DurationVar(&asked.timeout, "timeout", time.Minute, "how long to wait for the service")
	command.RunE = func(command *cobra.Command, args []string) error {
		return in.open(func(ctx context.Context, i *inspect.Inspector) (output.Printable, error) {
			left, err := i.Leftovers(args[0], fate, asked.asOf)
			left.DryRun = asked.dryRun
			if err != nil || asked.dryRun {
				return left, err
			}
			if err := confirm(command, left, asked.yes); err != nil {
				return nil, err
			}
			return i.Perform(ctx, left, asked.timeout)
		})
	}
	return command
}

// confirm asks for confirmation on a terminal. It fails if the user does not
// confirm, or if stdin is not a terminal.
func confirm(command *cobra.Command, about interface{ Question() string }, yes bool) error {
	if yes {
		return nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return errors.New("cannot ask for confirmation: stdin is not a terminal; review with --dry-run, then pass --yes")
	}
	return askWhether(command.InOrStdin(), command.ErrOrStderr(), about)
}

// askWhether writes the question to out and reads the answer from in.
func askWhether(in io.Reader, out io.Writer, about interface{ Question() string }) error {
	_, _ = fmt.Fprint(out, about.Question())
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("canceled; nothing was changed")
	}
	return nil
}
