package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// fails runs the program and returns what it says is wrong.
func fails(t *testing.T, args ...string) string {
	t.Helper()
	root := rootCommand("headwater")
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	require.Error(t, err)
	return err.Error()
}

func TestAVariableOfTheEnvironmentIsReadAsStrictlyAsItsFlag(t *testing.T) {
	for sentence, test := range map[string]struct{ variable, value, want string }{
		"yes is no boolean":                {"HEADWATER_LEADER_ELECT", "yes", `HEADWATER_LEADER_ELECT="yes": use true or false`},
		"one that is off unless it is set": {"HEADWATER_METRICS_AUTH", "yes", `HEADWATER_METRICS_AUTH="yes": use true or false`},
		"a duration that is none":          {"HEADWATER_WEBHOOK_DRAIN", "abc", `HEADWATER_WEBHOOK_DRAIN="abc": a duration needs a unit, such as 15s`},
		"a duration without a unit":        {"HEADWATER_WEBHOOK_DRAIN", "15", `HEADWATER_WEBHOOK_DRAIN="15": a duration needs a unit, such as 15s`},
		"a number that is none":            {"HEADWATER_WORKERS", "abc", `HEADWATER_WORKERS="abc": use a whole number`},
		"a number with a fraction":         {"HEADWATER_WORKERS", "1.5", `HEADWATER_WORKERS="1.5": use a whole number`},
		"a number that is too small":       {"HEADWATER_WORKERS", "0", "--workers 0: must be at least 1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Setenv(test.variable, test.value)
			require.Contains(t, fails(t, "run", "--config", "x.yaml"), test.want)
		})
	}
	t.Setenv("HEADWATER_PAGE", "on")
	t.Setenv("HEADWATER_WORKERS", "many")
	require.Equal(t, "HEADWATER_PAGE=\"on\": use true or false\nHEADWATER_WORKERS=\"many\": use a whole number", fails(t, "run"), "all of them")
	t.Setenv("HEADWATER_WAIT", "on")
	t.Setenv("HEADWATER_OUTPUT", "xml")
	require.Equal(t, "HEADWATER_OUTPUT=\"xml\": use one of table, wide, json, yaml, name, jsonpath=, jsonpath-as-json=, jsonpath-file=, custom-columns=\nHEADWATER_WAIT=\"on\": use true or false", fails(t, "status"), "of every command")
}

func TestAFlagWinsOverItsVariable(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	elect, drain := flags.Bool("leader-elect", true, ""), flags.Duration("webhook-drain", time.Second, "")
	workers, level, files := flags.Int("workers", 32, ""), flags.String("log-level", "info", ""), flags.StringSlice("filename", nil, "")
	for variable, value := range map[string]string{
		"LEADER_ELECT": "false", "WEBHOOK_DRAIN": "1m30s", "WORKERS": "4", "LOG_LEVEL": "", "FILENAME": "a,b",
	} {
		t.Setenv("HEADWATER_"+variable, value)
	}
	require.NoError(t, flags.Parse([]string{"--workers", "8"}))
	require.NoError(t, readEnvironment(flags))
	require.False(t, *elect)
	require.Equal(t, 90*time.Second, *drain)
	require.Equal(t, 8, *workers)
	require.Equal(t, "info", *level, "a variable without a value")
	require.Equal(t, []string{"a", "b"}, *files)
}
