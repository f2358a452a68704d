package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// deploy/COMMANDS.md lists every command and every flag, and no flag that does not exist.
func TestTheDocumentListsEveryCommandAndFlag(t *testing.T) {
	content, err := os.ReadFile("../../deploy/COMMANDS.md")
	require.NoError(t, err)
	text := string(content)
	known := map[string]bool{"--help": true, "--for": true, "--all-namespaces": true, "--selector": true} // the last three are kubectl's
	for _, command := range rootCommand("headwater").Commands() {
		requireDocumented(t, text, command, known)
	}
	for _, named := range regexp.MustCompile("`[^`\n]*`").FindAllString(text, -1) {
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(named, -1) {
			require.True(t, known[flag], "no command has %s", flag)
		}
	}
}

func requireDocumented(t *testing.T, text string, command *cobra.Command, known map[string]bool) {
	t.Helper()
	require.Regexp(t, `(?m)^\| \[?`+"`"+command.Name()+`[ `+"`"+`]`, text, command.Name())
	own, shared := section(text, command.Name()), section(text, "Flags")
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "help" {
			return
		}
		known["--"+flag.Name] = true
		require.Contains(t, own+shared, "`--"+flag.Name+"`", "%s of %s", flag.Name, command.Name())
	})
}

// section returns what stands below the heading that contains a word.
func section(text, word string) string {
	for _, part := range strings.Split(text, "\n## ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		if regexp.MustCompile(`\b` + word + `\b`).MatchString(heading) {
			return body
		}
	}
	return ""
}

// Each variable that a document or a help text names is that of a flag.
func TestTheDocumentsNameVariablesThatSetFlags(t *testing.T) {
	variables := map[string]bool{}
	for _, command := range rootCommand("headwater").Commands() {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			variables[variableOf(flag.Name)] = true
		})
	}
	texts := map[string]string{
		"headwater --help": says(t, "headwater", "--help"), "headwater run --help": says(t, "headwater", "run", "--help"),
	}
	for _, file := range []string{"../../deploy/COMMANDS.md", "../../deploy/README.md"} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[file] = string(content)
	}
	for where, text := range texts {
		named := regexp.MustCompile(environmentPrefix+`[A-Z_]*[A-Z]`).FindAllString(text, -1)
		require.NotEmpty(t, named, where)
		for _, variable := range named {
			require.True(t, variables[variable], "%s: no flag has %s", where, variable)
		}
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	for _, command := range rootCommand("headwater").Commands() {
		require.Contains(t, command.Example, "headwater "+command.Name(), command.Name())
		require.Contains(t, says(t, "headwater", command.Name(), "--help"), "Examples:", command.Name())
	}
}
