package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/app"
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
	require.Contains(t, says(t, "headwater", "--help"), `"plan" exits 2`)
}

func TestTheVersionSaysWhatItWasBuiltFrom(t *testing.T) {
	build := app.Build()
	require.NotEmpty(t, build.Commit)
	for _, part := range []string{build.Version, build.Commit, build.GoVersion, build.Platform} {
		require.Contains(t, says(t, "headwater", "version"), part)
	}
	var read app.BuildInfo
	require.NoError(t, json.Unmarshal([]byte(says(t, "headwater", "version", "-o", "json")), &read))
	require.Equal(t, build, read)
}

func TestShellsAreToldHowToComplete(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.Contains(t, says(t, "headwater", "completion", shell), "__complete", shell)
	}
	require.Contains(t, says(t, "headwater", "__complete", "pl"), "plan\t")
	require.Contains(t, says(t, "headwater", "__complete", "status", "-o", ""), "yaml\n")
	require.Contains(t, says(t, "headwater", "__complete", "run", "--log-level", "w"), "warn\n")
}
