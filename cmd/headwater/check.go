package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/inspect"
)

// checked is what is found of a file.
type checked struct {
	File     string          `json:"file"`
	Valid    bool            `json:"valid"`
	Rules    int             `json:"rules,omitempty"`
	Problems config.Problems `json:"problems,omitempty"`
	// Notes are about what is valid and hardly meant.
	Notes []config.Problem `json:"notes,omitempty"`
}

func (c checked) Table(out io.Writer) {
	_, _ = fmt.Fprintf(out, "%s is valid: %d rule(s)\n", c.File, c.Rules)
}

// stdin is what problems call the standard input.
const stdin = "<stdin>"

func load(file string, in io.Reader) (*config.Config, error) {
	if file != stdin {
		return config.Load(file)
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("read the standard input: %w", err)
	}
	return config.Parse(stdin, raw)
}

func tellNotes(out io.Writer, notes []config.Problem) {
	for _, note := range notes {
		note.Message = "note: " + note.Message
		_, _ = fmt.Fprintln(out, note)
	}
}

func checkCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "check FILE",
		Short: "Validate a configuration file, without a cluster",
		Long: `Validate a configuration file, or the standard input for -, without a cluster.

Exits 0 when the file is valid, 1 when it is not; every problem is listed with
its line and path, on the standard error, and with -o json and yaml on the
standard output, too. So are notes on what is valid and hardly meant.`,
		Args:              oneArgument,
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	format := addOutput(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		found := checked{File: args[0]}
		if found.File == "-" {
			found.File = stdin
		}
		loaded, err := load(found.File, command.InOrStdin())
		switch {
		case err == nil:
			found.Valid, found.Rules, found.Notes = true, len(loaded.Rules), loaded.Notes
			tellNotes(command.ErrOrStderr(), loaded.Notes)
		case *format == inspect.Table || !errors.As(err, &found.Problems):
			return err
		}
		return errors.Join(inspect.Print(command.OutOrStdout(), *format, found), err)
	}
	return command
}
