package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/config"
)

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Validate a configuration file, without a cluster",
		Long: `Validate a configuration file, without a cluster.

Exits 0 when the file is valid, 1 when it is not; every problem is listed with
its line and path.`,
		Args:              oneArgument,
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(command *cobra.Command, args []string) error {
			loaded, err := config.Load(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s is valid: %d rule(s)\n", args[0], len(loaded.Rules))
			return err
		},
	}
}
