package main

import (
	"errors"
	"fmt"
	"io"
	"os"

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
	_, _ = fmt.Fprintf(out, "%s is valid: %s\n", c.File, countOf(c.Rules, "rule"))
}

// countOf is a number of things that form their plural with s.
func countOf(number int, what string) string {
	if number != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", number, what)
}

// stdin is what problems call the standard input.
const stdin = "<stdin>"

func read(file string, in io.Reader) (raw []byte, err error) {
	if file != stdin {
		raw, err = os.ReadFile(file)
	} else {
		raw, err = io.ReadAll(in)
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return raw, nil
}

// check takes what is valid of the configurations in the file, and returns what
// is wrong with them.
func (c *checked) check(own string, in io.Reader) error {
	raw, err := read(c.File, in)
	if err != nil {
		return err
	}
	found, err := config.CheckFile(own, c.File, raw)
	if err != nil {
		return err
	}
	c.Valid = true
	for _, one := range found {
		c.Rules += len(one.Rules)
		c.Notes = append(c.Notes, one.Notes...)
	}
	return nil
}

func printNotes(out io.Writer, notes []config.Problem) {
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
FILE may also be a manifest with a ConfigMap that holds the configuration under
the key ` + config.ConfigMapKey + `, of one or several documents, or the values of the Helm
chart with the configuration under config. Lines are those of the file.

Exits 0 when the file is valid, 1 when it is not; every problem is listed with
its line and path, on the standard error, and with -o json and yaml on the
standard output, too. So are notes on what is valid and hardly meant.`,
		Args:              oneArgument,
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	own := command.Flags().StringP("namespace", "n", "headwater-system", "Headwater's own namespace, from which nothing is cloned, where the file does not name it")
	format := addOutput(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		found := checked{File: args[0]}
		if found.File == "-" {
			found.File = stdin
		}
		err := found.check(*own, command.InOrStdin())
		switch {
		case err == nil:
			printNotes(command.ErrOrStderr(), found.Notes)
		case *format == inspect.Table || !errors.As(err, &found.Problems):
			return err
		}
		return errors.Join(inspect.Print(command.OutOrStdout(), *format, found), err)
	}
	return command
}
