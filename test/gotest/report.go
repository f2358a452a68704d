package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"gotest.tools/gotestsum/testjson"
)

// module is the path of the repository's own module. The paths of the others begin
// with it, and go on with their folder.
const module = "github.com/headwater-k8s/headwater/"

var nested = regexp.MustCompile(`^test/(?:cel|deploy|gotest|page)(?:/|$)`)

// report tells which tests failed, and which could not tell.
func report(execution *testjson.Execution, inconclusive, args []string) error {
	return errors.Join(
		add("inconclusive", len(inconclusive) > 0, func(out io.Writer) {
			for _, line := range inconclusive {
				_, _ = fmt.Fprintln(out, "INCONCLUSIVE", line)
			}
		}),
		add("failed", len(execution.Failed()) > 0, func(out io.Writer) { writeFailures(out, execution, args) }),
	)
}

// add has write write to the file of that name in GOTEST_RESULTS, or to the standard
// output where there is none.
func add(name string, anything bool, write func(io.Writer)) error {
	if !anything {
		return nil
	}
	file, err := results(name)
	if err != nil {
		return err
	}
	if file == nil {
		write(os.Stdout)
		return nil
	}
	write(file)
	return file.Close()
}

// writeFailures writes the logs of the tests that failed, and then a command for each.
func writeFailures(out io.Writer, execution *testjson.Execution, args []string) {
	testjson.PrintSummary(out, execution, testjson.SummarizeFailed|testjson.SummarizeErrors|testjson.SummarizeOutput)
	var lines []string
	for _, failed := range execution.Failed() {
		root, _ := failed.Test.Split()
		line := alone(failed.Package, root, args, os.Environ())
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	_, _ = fmt.Fprintf(out, "\nFAILED. To run each alone:\n  %s\n", strings.Join(lines, "\n  "))
}

// alone is the command that runs test of the package alone, or the package if test is
// empty, in the way in which it ran with these arguments in this environment.
func alone(pkg, test string, args, environ []string) string {
	var words []string
	for _, variable := range environ {
		if strings.HasPrefix(variable, "HEADWATER_") {
			words = append(words, variable)
		}
	}
	flags := goFlags(args)
	race := slices.Contains(flags, "-race")
	if race {
		words = append(words, "CGO_ENABLED=1")
	}
	folder := strings.TrimPrefix(pkg, module)
	words = append(words, "go")
	if other := strings.TrimSuffix(nested.FindString(folder), "/"); other != "" {
		words, folder = append(words, "-C", other), strings.TrimPrefix(strings.TrimPrefix(folder, other), "/")
	}
	words = append(words, "test", "-count=1")
	if race {
		words = append(words, "-race")
	}
	if at := slices.Index(flags, "-tags"); at >= 0 && at+1 < len(flags) {
		words = append(words, "-tags", flags[at+1])
	}
	if test != "" {
		words = append(words, "-run", "'^"+test+"$'")
	}
	return strings.Join(append(words, "./"+folder), " ")
}
