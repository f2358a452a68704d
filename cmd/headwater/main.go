// Command headwater keeps shared Secrets and ConfigMaps the same in every
// namespace that needs them, protects their sources, and makes their consumers
// pick changes up.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "headwater:", err)
		os.Exit(1)
	}
}

func run() error {
	root := &cobra.Command{
		Use:           "headwater",
		Short:         "One source, every namespace: sync, protect and reload shared Secrets and ConfigMaps",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(runCommand(), checkCommand(), versionCommand())
	return root.ExecuteContext(context.Background())
}
