// Command headwater keeps shared Secrets and ConfigMaps the same in every
// namespace that needs them, protects their sources, and makes their consumers
// pick changes up.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	_ "time/tzdata" // an image may have no time zones

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/config"
)

func main() {
	switch err := rootCommand(os.Args[0]).ExecuteContext(context.Background()); {
	case err == nil:
	case errors.Is(err, errChanges), errors.Is(err, errAttention), errors.Is(err, errNotCarried):
		os.Exit(2)
	default:
		printError(err)
		os.Exit(1)
	}
}

// tell prints what went wrong. Problems of a file begin with its name and
// line, one to a line, as editors read them.
func printError(err error) {
	var problems config.Problems
	if errors.As(err, &problems) {
		_, _ = fmt.Fprintln(os.Stderr, problems)
		return
	}
	_, _ = fmt.Fprintln(os.Stderr, message(err))
}

// message is err with the name of the program in front, and in front of each
// error that errors.Join put into it.
func message(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // a list inside a sentence stays there
		var plain, prefixed []string
		for _, one := range joined.Unwrap() {
			plain, prefixed = append(plain, one.Error()), append(prefixed, message(one))
		}
		if strings.Join(plain, "\n") == err.Error() {
			return strings.Join(prefixed, "\n")
		}
	}
	return "headwater: " + err.Error()
}

// rootCommand is all of them. Called is the name by which the program was
// started: as kubectl-headwater it is a plugin, and its help says so.
func rootCommand(called string) *cobra.Command {
	root := &cobra.Command{
		Use:   "headwater",
		Short: "One source, every namespace: sync, protect and reload shared Secrets and ConfigMaps",
		Long: `One source, every namespace: sync, protect and reload shared Secrets and
ConfigMaps.

Each command exits 0 when it did what it was asked to, and 1 when it did not,
with the reason on the standard error. "status" exits 2 when something needs
attention, "plan" when something would change, "migrate" when something is left
to decide.`,
		Version:       buildInfo{app.Build()}.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			return readEnvironment(command.Flags())
		},
	}
	if strings.HasPrefix(filepath.Base(called), "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl headwater"}
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(runCommand(), checkCommand(), statusCommand(), planCommand(), approveCommand(), releaseCommand(), pruneCommand(),
		whoCanEditCommand(), explainCommand(), consumersCommand(), migrateCommand(), versionCommand())
	for _, command := range root.Commands() {
		if command.ValidArgsFunction == nil {
			command.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	return root
}

// completes has the shell offer values for a flag.
func offerValues(command *cobra.Command, flag string, values ...string) {
	// It fails for a flag that does not exist, or a second call: for a typing error.
	if err := command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}
