// Command headwater keeps shared Secrets and ConfigMaps the same in every
// namespace that needs them, protects their sources, and makes their consumers
// pick changes up.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	_ "time/tzdata" // an image may have no time zones

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/config"
)

func main() {
	switch err := run(); {
	case err == nil:
	case errors.Is(err, errChanges):
		os.Exit(2)
	default:
		tell(err)
		os.Exit(1)
	}
}

// tell prints what went wrong. Problems of a file begin with its name and
// line, one to a line, as editors read them.
func tell(err error) {
	var problems config.Problems
	if errors.As(err, &problems) {
		_, _ = fmt.Fprintln(os.Stderr, problems)
		return
	}
	_, _ = fmt.Fprintln(os.Stderr, "headwater:", err)
}

func run() error {
	root := &cobra.Command{
		Use:           "headwater",
		Short:         "One source, every namespace: sync, protect and reload shared Secrets and ConfigMaps",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(runCommand(), checkCommand(), statusCommand(), planCommand(), approveCommand(), whoCanEditCommand(),
		explainCommand(), consumersCommand(), versionCommand())
	return root.ExecuteContext(context.Background())
}
