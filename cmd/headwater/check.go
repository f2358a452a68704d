package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/output"
)

// checked is the result of checking a file.
type checked struct {
	File     string          `json:"file"`
	Valid    bool            `json:"valid"`
	Rules    int             `json:"rules,omitempty"`
	Problems config.Problems `json:"problems,omitempty"`
	// Notes are warnings about settings that are valid but probably unintended.
	Notes []config.Problem `json:"notes,omitempty"`
}

func (c checked) Table(out *output.Writer) {
	_, _ = fmt.Fprintf(out, "%s is valid: %s\n", c.File, countOf(c.Rules, "rule"))
}

// countOf returns "1 rule" or "2 rules" for what = "rule".
func countOf(number int, what string) string {
	if number != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", number, what)
}

// stdin is the file name of the standard input in problems.
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

// check reads the configurations in the file. It returns their problems as an
// error, or sets c.Rules and c.Notes.
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
		Long: `Validate a configuration file, or stdin for -, without a cluster. FILE may also be
a manifest, of one or more documents, with a ConfigMap that contains the
configuration in the key ` + config.ConfigMapKey + `; or values of the Helm chart with the
configuration under config. Line numbers are those of FILE.

The command lists every problem with its line and path on stderr, and with -o
json or yaml also on stdout. It also lists warnings for settings that are valid
but probably unintended.

Exits 0 if the file is valid, else 1.`,
		Example: `  headwater check headwater.yaml
  helm template headwater deploy/helm/headwater --values values.yaml | headwater check -`,
		Args:              oneArgument,
		ValidArgsFunction: cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	own := command.Flags().String("headwater-namespace", "headwater-system", "the namespace that Headwater runs in, which cannot contain a source; used if the file does not name it")
	printing := addOutput(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		found := checked{File: args[0]}
		if found.File == "-" {
			found.File = stdin
		}
		err := found.check(*own, command.InOrStdin())
		switch {
		case err == nil:
			printNotes(command.ErrOrStderr(), found.Notes)
		case printing.Format.IsTable() || !errors.As(err, &found.Problems):
			return err
		}
		return errors.Join(printing.Print(command.OutOrStdout(), found), err)
	}
	return command
}
