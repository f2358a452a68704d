// Command gotest runs `go test` with its own arguments, and is for reading: a line for
// each package that ends, a line at once for each test that fails, and a line every
// half minute that says what still runs. At the end come the logs of the tests that
// failed, and one line for each with the command that runs it alone.
//
// It exits as `go test` does. Packages are the arguments that begin with "./".
//
// If GOTEST_RESULTS names a folder, the logs and commands are added to the file
// "failed" there instead, so that a caller who runs several of these at a time can
// print them last. The tests that could not tell, which end with a message that begins
// with "INCONCLUSIVE: ", are added to the file "inconclusive" there.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"gotest.tools/gotestsum/testjson"
)

func main() {
	code, err := run(context.Background(), os.Args[1:])
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "gotest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run returns the exit code of go test.
func run(ctx context.Context, args []string) (int, error) {
	// The terminal interrupts go test as well. Its tests end, and what they said is reported.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)

	total, err := countPackages(ctx, args)
	if err != nil {
		return 1, err
	}
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	command.Stderr = os.Stderr
	events, err := command.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := command.Start(); err != nil {
		return 1, err
	}
	progress := newProgress(os.Stdout, total, isVerbose(args))
	execution, scanErr := testjson.ScanTestOutput(testjson.ScanConfig{Stdout: events, Handler: progress})
	var exit *exec.ExitError
	if err := command.Wait(); err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	if scanErr != nil {
		return 1, fmt.Errorf("read the events of go test: %w", scanErr)
	}
	return command.ProcessState.ExitCode(), report(execution, progress.inconclusive, args)
}

// isVerbose reports whether go test is asked for the output of tests that pass.
func isVerbose(args []string) bool { return slices.Contains(goFlags(args), "-v") }

// goFlags are the arguments that are not for the test binaries.
func goFlags(args []string) []string {
	if at := slices.Index(args, "-args"); at >= 0 {
		return args[:at]
	}
	return args
}

// countPackages is how many packages go test will run.
func countPackages(ctx context.Context, args []string) (int, error) {
	list := []string{"list"}
	for _, arg := range goFlags(args) {
		if strings.HasPrefix(arg, "./") || arg == "." {
			list = append(list, arg)
		}
	}
	out, err := exec.CommandContext(ctx, "go", list...).Output()
	if err != nil {
		return 0, fmt.Errorf("go %s: %w", strings.Join(list, " "), err)
	}
	return strings.Count(string(out), "\n"), nil
}

// results opens a file of GOTEST_RESULTS for more lines, or is nil without one.
func results(name string) (*os.File, error) {
	folder := os.Getenv("GOTEST_RESULTS")
	if folder == "" {
		return nil, nil //nolint:nilnil // no folder, no file
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(folder, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}
