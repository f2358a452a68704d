package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/output"
)

// built is what the program was built from, for people.
type buildInfo struct{ app.BuildInfo }

func (b buildInfo) String() string {
	return fmt.Sprintf("%s (commit %s, %s, %s)", b.Version, b.Commit, b.GoVersion, b.Platform)
}

func (b buildInfo) Table(out *output.Writer) { _, _ = fmt.Fprintln(out, "headwater version", b) }

func versionCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "version",
		Example: `  headwater version -o json`,
		Short:   "Print the version and the commit, Go version and platform of the build",
		Args:    noArguments,
	}
	printing := addOutput(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		return printing.Print(command.OutOrStdout(), buildInfo{app.Build()})
	}
	return command
}
