package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/config"
)

// says runs the program, started as called, and returns what it prints.
func says(t *testing.T, called string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand(called)
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	require.NoError(t, root.ExecuteContext(t.Context()))
	return out.String()
}

func TestTheHelpSpeaksTheNameThatItWasCalledBy(t *testing.T) {
	for called, want := range map[string]string{
		"headwater":                        "  headwater plan [flags]",
		"/usr/local/bin/headwater":         "  headwater plan [flags]",
		"/usr/local/bin/kubectl-headwater": "  kubectl headwater plan [flags]",
	} {
		t.Run(called, func(t *testing.T) {
			require.Contains(t, says(t, called, "plan", "--help"), want)
		})
	}
	require.Contains(t, says(t, "kubectl-headwater", "plan", "--help"), "\n  kubectl headwater plan --config headwater.yaml\n")
	require.Contains(t, says(t, "kubectl-headwater", "check", "--help"), "deploy/helm/headwater --values values.yaml | kubectl headwater check -\n")
	require.Contains(t, says(t, "headwater", "--help"), `"status" exits 2`)
	require.Contains(t, says(t, "headwater", "status", "--help"), "  headwater status [RULE] [flags]")
}

func TestTheVersionSaysWhatItWasBuiltFrom(t *testing.T) {
	build := app.Build()
	require.NotEmpty(t, build.Commit)
	for _, part := range []string{build.Version, build.Commit, build.GoVersion, build.Platform} {
		require.Contains(t, says(t, "headwater", "version"), part)
	}
	require.Equal(t, says(t, "headwater", "version"), says(t, "headwater", "--version"))
	var read app.BuildInfo
	require.NoError(t, json.Unmarshal([]byte(says(t, "headwater", "version", "-o", "json")), &read))
	require.Equal(t, build, read)
	require.Contains(t, says(t, "headwater", "version", "-o", "yaml"), "goVersion: "+build.GoVersion+"\n")
}

func TestEachOfSeveralErrorsNamesTheProgram(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for sentence, test := range map[string]struct {
		err  error
		want string
	}{
		"one error":                     {one, "headwater: one"},
		"an error of two lines":         {errors.New("one:\n  two"), "headwater: one:\n  two"},
		"two errors":                    {errors.Join(one, two), "headwater: one\nheadwater: two"},
		"two errors within one message": {fmt.Errorf("both %w and %w", one, two), "headwater: both one and two"},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, message(test.err)) })
	}
}

func TestTheNumberOfRulesHasTheRightPlural(t *testing.T) {
	require.Equal(t, "1 rule", countOf(1, "rule"))
	require.Equal(t, "2 rules", countOf(2, "rule"))
}

func TestCheckListsProblemsAsData(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headwater.yaml")
	var told bytes.Buffer
	checks := func(content, format string) (out string, err error) {
		require.NoError(t, os.WriteFile(file, []byte("apiVersion: headwater.dev/v1alpha1\nkind: Config\n"+content), 0o600))
		var answer bytes.Buffer
		root := rootCommand("headwater")
		root.SetOut(&answer)
		root.SetErr(&told)
		root.SetArgs([]string{"check", file, "-o", format})
		err = root.ExecuteContext(t.Context())
		return answer.String(), err
	}
	out, err := checks("ruls: []\n", "json")
	var problems config.Problems
	require.ErrorAs(t, err, &problems, "told to people, and by the exit")
	var found checked
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.False(t, found.Valid)
	require.Equal(t, 3, found.Problems[0].Line)
	require.Equal(t, "ruls", found.Problems[0].Path)
	require.Contains(t, found.Problems[0].Message, "rules")

	out, err = checks("ruls: []\n", "table")
	require.ErrorAs(t, err, &problems)
	require.Empty(t, out)
	out, err = checks("rules: []\n", "yaml")
	require.NoError(t, err)
	require.Equal(t, "file: "+file+"\nvalid: true\n", out)
	out, err = checks("rules: []\n", "table")
	require.NoError(t, err)
	require.Equal(t, file+" is valid: 0 rules\n", out)

	const hardlyMeant = "safety: {maxDeleteFraction: 1}\n"
	out, err = checks(hardlyMeant, "json")
	require.NoError(t, err, "a note is no problem")
	found = checked{}
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.True(t, found.Valid)
	require.Len(t, found.Notes, 1)
	require.Equal(t, "safety.maxDeleteFraction", found.Notes[0].Path)
	_, err = checks(hardlyMeant, "table")
	require.NoError(t, err)
	require.Contains(t, told.String(), file+":3: safety.maxDeleteFraction: note: never holds")
}

func TestShellsAreToldHowToComplete(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.Contains(t, says(t, "headwater", "completion", shell), "__complete", shell)
	}
	require.Contains(t, says(t, "headwater", "__complete", "pl"), "plan\t")
	require.Contains(t, says(t, "headwater", "__complete", "status", "-o", ""), "yaml\n")
	require.Contains(t, says(t, "headwater", "__complete", "run", "--log-level", "w"), "warn\n")
}

func TestCheckReadsWhatAGitRepositoryHolds(t *testing.T) {
	const text = "    apiVersion: headwater.dev/v1alpha1\n    kind: Config\n"
	for sentence, test := range map[string]struct{ file, want string }{
		"a manifest":        {"kind: ConfigMap\ndata:\n  headwater.yaml: |\n" + text + "    ruls: []\n", ":6: ruls: unknown key"},
		"values of a chart": {"config:\n  ruls: []\n", ":2: ruls: unknown key"},
	} {
		t.Run(sentence, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "values.yaml")
			require.NoError(t, os.WriteFile(file, []byte(test.file), 0o600))
			require.Contains(t, fails(t, "check", file), file+test.want)
			require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(test.file, "ruls", "rules")), 0o600))
			require.Equal(t, file+" is valid: 0 rules\n", says(t, "headwater", "check", file))
		})
	}
}

func TestCheckReadsTheStandardInput(t *testing.T) {
	checks := func(content string) (string, error) {
		var out bytes.Buffer
		root := rootCommand("headwater")
		root.SetOut(&out)
		root.SetIn(strings.NewReader("apiVersion: headwater.dev/v1alpha1\nkind: Config\n" + content))
		root.SetArgs([]string{"check", "-"})
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := checks("rules: []\n")
	require.NoError(t, err)
	require.Equal(t, "<stdin> is valid: 0 rules\n", out)
	_, err = checks("ruls: []\n")
	require.ErrorContains(t, err, "<stdin>:3: ruls: unknown key")
}
