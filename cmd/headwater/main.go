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
	"regexp"
	"strings"
	_ "time/tzdata" // an image may have no time zones

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/inspect/reported"
	"github.com/headwater-k8s/headwater/internal/output"
)

func main() {
	switch err := rootCommand(os.Args[0]).ExecuteContext(context.Background()); {
	case err == nil:
	case errors.Is(err, errChanges), errors.Is(err, errAttention), errors.Is(err, errNotCarried):
		os.Exit(2)
	case errors.Is(err, reported.ErrUnanswered):
		printError(err)
		os.Exit(3)
	default:
		printError(err)
		os.Exit(1)
	}
}

// printError prints err on stderr. Problems of a configuration file are printed one
// per line, with file name and line number first, as editors expect.
func printError(err error) {
	var problems config.Problems
	if errors.As(err, &problems) {
		_, _ = fmt.Fprintln(os.Stderr, problems)
		return
	}
	_, _ = fmt.Fprintln(os.Stderr, message(err))
}

// message returns err prefixed with the program's name. Each error of an
// errors.Join gets the prefix.
func message(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // only if err is nothing but the joined errors
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

// calledAs matches the program at the start of an example, or after a pipe.
var calledAs = regexp.MustCompile(`(?m)(^  (?:[A-Z_]+=\S+ )?|\| )headwater `)

// rootCommand returns the command with all subcommands. called is the program's
// name: as kubectl-headwater it is a kubectl plugin, and the help shows that.
func rootCommand(called string) *cobra.Command {
	root := &cobra.Command{
		Use:   "headwater",
		Short: "One source, every namespace: sync, protect and reload shared Secrets and ConfigMaps",
		Long: `One source, every namespace: sync, protect and reload shared Secrets and
ConfigMaps.

Every command exits 0 on success and 1 on failure, with the reason on stderr.
"status" exits 2 if something needs attention, "history" if no leader confirms it,
"plan" if something would change, "migrate" if you have to review the result. A command
about a delivery exits 3 if its request is stored and no leader answered it in time.

` + aboutEnvironment,
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
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Look at a cluster:", []*cobra.Command{statusCommand(), explainCommand(), consumersCommand(), whoCanEditCommand()}},
		{"Write a configuration:", []*cobra.Command{checkCommand(), planCommand(), migrateCommand()}},
		{"Decide what is held or left:", []*cobra.Command{approveCommand(), releaseCommand(), pruneCommand()}},
		{"Deliver revisions:", deliveryCommands()},
		{"Run the service:", []*cobra.Command{runCommand(), versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, command := range group.commands {
			command.GroupID = group.title
		}
		root.AddCommand(group.commands...)
	}
	for _, command := range root.Commands() {
		command.Example = calledAs.ReplaceAllString(command.Example, "${1}"+root.DisplayName()+" ")
		if command.ValidArgsFunction == nil {
			command.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	return root
}

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
