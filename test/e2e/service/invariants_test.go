package service

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/test/e2e"
)

// ARCHITECTURE.md numbers the invariants; the comment of a test names those
// that it holds up.
func TestEveryInvariantHasATestThatNamesIt(t *testing.T) {
	architecture, err := os.ReadFile(filepath.Join(e2e.Root(t), "ARCHITECTURE.md"))
	require.NoError(t, err)
	_, list, found := strings.Cut(string(architecture), "## Invariants")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n## ")
	invariants := regexp.MustCompile(`(?m)^(\d+)\. `).FindAllStringSubmatch(list, -1)
	require.NotEmpty(t, invariants)

	tests := allTests(t)
	for _, invariant := range invariants {
		require.Regexp(t, fmt.Sprintf(`(?m)^// .*Invariant %s\b`, invariant[1]), tests)
	}
}

func TestTheThreatModelNamesTestsThatThereAre(t *testing.T) {
	threats, err := os.ReadFile(filepath.Join(e2e.Root(t), "deploy", "THREATS.md"))
	require.NoError(t, err)
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(string(threats), -1)
	require.NotEmpty(t, named)
	tests := allTests(t)
	for _, name := range named {
		require.Contains(t, tests, "func "+name[1]+"(")
	}
}

// ARCHITECTURE.md says of every library that is required directly what it is for.
func TestEveryLibraryIsAccountedFor(t *testing.T) {
	architecture, err := os.ReadFile(filepath.Join(e2e.Root(t), "ARCHITECTURE.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(architecture), "## Libraries")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	var told []string
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`[^|]*`"+`) \|`).FindAllStringSubmatch(table, -1) {
		for _, library := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			told = append(told, library[1])
		}
	}
	module, err := os.ReadFile(filepath.Join(e2e.Root(t), "go.mod"))
	require.NoError(t, err)
	var required []string
	for _, line := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(module), -1) {
		required = append(required, line[1])
	}
	require.NotEmpty(t, required)
	require.ElementsMatch(t, required, told)
}

// allTests is the text of every test there is.
func allTests(t *testing.T) string {
	t.Helper()
	var tests strings.Builder
	require.NoError(t, filepath.WalkDir(e2e.Root(t), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		tests.Write(content)
		return err
	}))
	return tests.String()
}
