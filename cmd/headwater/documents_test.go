package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// texts returns the texts that people read, by file: documents, what the chart prints, alerts,
// and what the page and the messages say.
func texts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{
		"headwater --help": says(t, "headwater", "--help"), "headwater run --help": says(t, "headwater", "run", "--help"),
	}
	for _, command := range rootCommand("headwater").Commands() {
		found["headwater "+command.Name()+" --help"] = command.Long + "\n" + command.Example
	}
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name != ".." && strings.HasPrefix(name, ".") || name == "testdata" || name == "vendor" || name == "bin") && path != "../.." {
			return filepath.SkipDir
		}
		if entry.IsDir() || strings.HasSuffix(name, "_test.go") || name == "CHANGELOG.md" || !slices.Contains([]string{".md", ".txt", ".yaml", ".html", ".js", ".go"}, filepath.Ext(name)) {
			return nil
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	}))
	return found
}

var (
	// quotedCommand is a command in a sentence, which may go on in the next line; shellCommand
	// is one in a block of a document or an example.
	quotedCommand = regexp.MustCompile("(?:`|<code>|command: `|commands\\[\"|: *\")(?:kubectl |bin/)?headwater ([a-z][^`<\"]*)[`<\"]")
	shellCommand  = regexp.MustCompile(`(?m)^(?: *\$?|.*[|(] ?)(?: *)(?:kubectl |bin/)?headwater ([a-z].*)$`)
	// endOfCommand is where a shell begins another one.
	endOfCommand = regexp.MustCompile(` *(?:[|>#;&){]|"$).*`)
)

// What documents, help texts and messages tell people to run is a command with these flags.
func TestWhatPeopleAreToldToRunExists(t *testing.T) {
	checked, wrong := 0, []string{}
	for file, text := range texts(t) {
		if strings.HasPrefix(file, "../../test/") && strings.HasSuffix(file, ".go") {
			continue
		}
		found := quotedCommand.FindAllStringSubmatch(text, -1)
		if !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".js") {
			found = append(found, shellCommand.FindAllStringSubmatch(text, -1)...)
		}
		for _, match := range found {
			words := strings.Fields(endOfCommand.ReplaceAllString(match[1], ""))
			if slices.Contains([]string{"help", "completion", "__complete"}, words[0]) { // which cobra adds
				continue
			}
			checked++
			command, _, err := rootCommand("headwater").Find(words[:1])
			if err != nil {
				wrong = append(wrong, file+": headwater "+match[1])
				continue
			}
			for _, word := range words[1:] {
				if !hasFlag(command, word) {
					wrong = append(wrong, file+": "+word+" of headwater "+match[1])
				}
			}
		}
		for _, line := range regexp.MustCompile(`(?m)^extraArgs: \[(.*)\]`).FindAllStringSubmatch(text, -1) {
			command, _, err := rootCommand("headwater").Find([]string{"run"})
			require.NoError(t, err)
			if !hasFlag(command, line[1]) {
				wrong = append(wrong, file+": "+line[0])
			}
		}
	}
	require.Empty(t, wrong)
	require.Greater(t, checked, 150)
}

// hasFlag reports whether word is no flag, or one of the command.
func hasFlag(command *cobra.Command, word string) bool {
	name, _, _ := strings.Cut(word, "=")
	switch {
	case strings.HasPrefix(name, "--"):
		name = strings.Trim(name, "-[].,")
		return name == "help" || command.Flag(name) != nil
	case len(name) == 2 && name[0] == '-':
		return command.Flags().ShorthandLookup(name[1:]) != nil
	default:
		return true
	}
}

// Each variable that a text names is that of a flag.
func TestTheDocumentsNameVariablesThatSetFlags(t *testing.T) {
	variables := map[string]bool{}
	for _, command := range rootCommand("headwater").Commands() {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			variables[variableOf(flag.Name)] = true
		})
	}
	named := map[string]int{}
	for where, text := range texts(t) {
		if where == "../../CONTRIBUTING.md" || strings.HasPrefix(where, "../../test/") || strings.HasSuffix(where, ".go") {
			continue // those of tests
		}
		for _, variable := range regexp.MustCompile(environmentPrefix+`[A-Z_]*[A-Z]`).FindAllString(text, -1) {
			require.True(t, variables[variable], "%s: no flag has %s", where, variable)
			named[where]++
		}
	}
	for _, where := range []string{"headwater --help", "headwater run --help", "../../deploy/COMMANDS.md", "../../deploy/README.md"} {
		require.Positive(t, named[where], where)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	for _, command := range rootCommand("headwater").Commands() {
		require.Contains(t, command.Example, "headwater "+command.Name(), command.Name())
		require.Contains(t, says(t, "headwater", command.Name(), "--help"), "Examples:", command.Name())
	}
}
