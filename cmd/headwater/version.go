package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/app"
)

func versionCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what it was built from",
		Args:  noArguments,
	}
	output := command.Flags().StringP("output", "o", "text", "text or json")
	completes(command, "output", "text", "json")
	command.RunE = func(command *cobra.Command, _ []string) error {
		build := app.Build()
		switch *output {
		case "text":
			_, err := fmt.Fprintf(command.OutOrStdout(), "headwater %s (commit %s, %s, %s)\n",
				build.Version, build.Commit, build.GoVersion, build.Platform)
			return err
		case "json":
			encoder := json.NewEncoder(command.OutOrStdout())
			encoder.SetIndent("", "  ")
			return encoder.Encode(build)
		default:
			return fmt.Errorf("output format %q is not known; use text or json", *output)
		}
	}
	return command
}
