package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWrongCommandLineIsToldByNameAndWhereHelpIs(t *testing.T) {
	for line, test := range map[string]struct {
		args []string
		want string
	}{
		"check":                 {[]string{"check"}, "FILE is missing; see headwater check --help"},
		"approve":               {[]string{"approve"}, "RULE is missing; see headwater approve --help"},
		"who-can-edit":          {[]string{"who-can-edit"}, "RULE is missing; see headwater who-can-edit --help"},
		"explain":               {[]string{"explain"}, "KIND/NAME is missing; see headwater explain --help"},
		"release":               {[]string{"release"}, "RULE is missing; see headwater release --help"},
		"prune":                 {[]string{"prune"}, "RULE is missing; see headwater prune --help"},
		"approve a b":           {[]string{"approve", "a", "b"}, "takes one RULE, not 2: a b; see headwater approve --help"},
		"status a b":            {[]string{"status", "a", "b"}, "takes one RULE, not 2: a b; see headwater status --help"},
		"plan extra":            {[]string{"plan", "extra"}, "takes no arguments: extra; see headwater plan --help"},
		"run headwater.yaml":    {[]string{"run", "headwater.yaml"}, "takes no arguments: headwater.yaml; see headwater run --help"},
		"plan --nope":           {[]string{"plan", "--nope"}, "unknown flag: --nope; see headwater plan --help"},
		"plan --config":         {[]string{"plan", "--config"}, "flag needs an argument: --config; see headwater plan --help"},
		"run --workers x":       {[]string{"run", "--workers", "x"}, `--workers "x": use a whole number; see headwater run --help`},
		"run --webhook-drain 9": {[]string{"run", "--webhook-drain", "9"}, `--webhook-drain "9": a duration needs a unit, such as 15s; see headwater run --help`},
		"status -o xml":         {[]string{"status", "-o", "xml"}, `--output "xml": use one of table, wide, json, yaml, name, jsonpath=, jsonpath-as-json=, jsonpath-file=, custom-columns=; see headwater status --help`},
		"run --leader-elect=on": {[]string{"run", "--leader-elect=on"}, `--leader-elect "on": use true or false; see headwater run --help`},
	} {
		t.Run(line, func(t *testing.T) {
			require.Equal(t, test.want, fails(t, test.args...))
		})
	}
}

func TestShellsAreOfferedRulesAndNoFilesInTheirPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headwater.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`apiVersion: headwater.dev/v1alpha1
kind: Config
rules:
- name: spread
  source: {kind: Secret, namespace: a, name: x}
  sync: {history: 2}
- name: guarded
  source: {kind: Secret, namespace: a, name: y}
  protect: {}
`), 0o600))
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "missing"))
	const noFiles, yamlFiles = ":4\n", "yaml\nyml\n:8\n"
	for line, test := range map[string]struct {
		args []string
		want string
	}{
		"diff with a file":         {[]string{"diff", "--config", file, ""}, "spread\n" + noFiles},
		"who-can-edit with a file": {[]string{"who-can-edit", "--config", file, ""}, "guarded\n" + noFiles},
		"approve of the cluster":   {[]string{"approve", ""}, noFiles},
		"a second rule":            {[]string{"diff", "--config", file, "spread", ""}, noFiles},
		"plan, which takes none":   {[]string{"plan", ""}, noFiles},
		"check":                    {[]string{"check", ""}, yamlFiles},
	} {
		t.Run(line, func(t *testing.T) {
			said := says(t, "headwater", append([]string{"__complete"}, test.args...)...)
			require.Regexp(t, "^"+test.want+"Completion ended", said)
		})
	}
	t.Setenv("HEADWATER_CONFIG", file)
	require.Contains(t, says(t, "headwater", "__complete", "diff", ""), "spread\n")
}
