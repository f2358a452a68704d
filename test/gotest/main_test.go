package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gotest.tools/gotestsum/testjson"
)

// runsIn runs the tests of a folder of testdata, and returns what is in the files of results.
func runsIn(t *testing.T, args ...string) (code int, failed, inconclusive string) {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("GOTEST_RESULTS", folder)
	t.Chdir(filepath.Join("testdata", "broken"))
	code, err := run(t.Context(), append([]string{"-vet=off"}, args...))
	require.NoError(t, err)
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if os.IsNotExist(err) {
			return ""
		}
		require.NoError(t, err)
		return string(content)
	}
	return code, read("failed"), read("inconclusive")
}

func TestWhatFailedIsReportedWithItsLogAndACommand(t *testing.T) {
	for what, test := range map[string]struct {
		pkg          string
		log, command string
	}{
		"a row of a table":            {"fails", "one is not two", `go test -count=1 -run '^TestTable$' ./broken/fails`},
		"a panic":                     {"breaks", "panic: out of order", `go test -count=1 -run '^TestPanics$' ./broken/breaks`},
		"a package without a compile": {"wrong", "undefined: missing", `go test -count=1 ./broken/wrong`},
	} {
		t.Run(what, func(t *testing.T) {
			code, failed, _ := runsIn(t, "./"+test.pkg, "./fine")
			require.NotZero(t, code)
			log, commands, found := strings.Cut(failed, "\nFAILED. To run each alone:\n")
			require.True(t, found, failed)
			require.Contains(t, log, test.log)
			require.NotContains(t, log, "of no interest")
			require.Equal(t, 1, strings.Count(commands, "\n"), commands)
			require.Contains(t, commands, test.command)
		})
	}
}

func TestWhatCouldNotTellIsKeptAndIsNoFailure(t *testing.T) {
	code, failed, inconclusive := runsIn(t, "./unsure", "./fine")
	require.Zero(t, code)
	require.Empty(t, failed)
	require.Contains(t, inconclusive, "TestLate: the machine was late by 3s")
	require.NotContains(t, inconclusive, "TestLeftOut")
}

func TestATestThatWaitsForOthersIsNotCalledRunning(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, 2, false)
	happens := func(test string, actions ...testjson.Action) {
		for _, action := range actions {
			require.NoError(t, p.Event(testjson.TestEvent{Package: module + "sync", Test: test, Action: action}, nil))
		}
	}
	happens("TestWaits", testjson.ActionRun, testjson.ActionPause)
	happens("TestGoesOn", testjson.ActionRun, testjson.ActionPause, testjson.ActionCont)
	p.said = time.Now().Add(-quiet)
	happens("TestBegins", testjson.ActionRun)
	require.Contains(t, out.String(), "running")
	require.Contains(t, out.String(), "TestGoesOn")
	require.Contains(t, out.String(), "TestBegins")
	require.NotContains(t, out.String(), "TestWaits")
}

func TestTheCommandRunsATestTheWayItRan(t *testing.T) {
	for how, test := range map[string]struct {
		pkg, test string
		args      []string
		environ   []string
		command   string
	}{
		"plain":             {"sync/plan", "TestPlan", []string{"-p", "2", "./..."}, nil, "go test -count=1 -run '^TestPlan$' ./sync/plan"},
		"with a seed":       {"sync", "TestX", nil, []string{"PATH=/bin", "HEADWATER_SEED=11"}, "HEADWATER_SEED=11 go test -count=1 -run '^TestX$' ./sync"},
		"with the race":     {"sync", "TestX", []string{"-race", "./sync"}, nil, "CGO_ENABLED=1 go test -count=1 -race -run '^TestX$' ./sync"},
		"with tags":         {"test/node/e2e", "TestX", []string{"-tags", "node", "./test/node/..."}, nil, "go test -count=1 -tags node -run '^TestX$' ./test/node/e2e"},
		"of its own module": {"test/page", "TestX", []string{"./..."}, nil, "go -C test/page test -count=1 -run '^TestX$' ./"},
		"a whole package":   {"sync", "", nil, nil, "go test -count=1 ./sync"},
	} {
		t.Run(how, func(t *testing.T) {
			require.Equal(t, test.command, alone(module+test.pkg, test.test, test.args, test.environ))
		})
	}
}
