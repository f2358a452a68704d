package documents

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/headwater-k8s/headwater/"

var (
	quoted   = regexp.MustCompile("`([^`\n]+)`")
	testName = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark)[A-Z]\w*$`)
	// What begins like one of the folders of the repository.
	pathName = regexp.MustCompile(`^(?:cmd|configs|deploy|internal|protect|reload|sync|test)(?:/[\w./-]+)?$`)
	// A test with the comment above it.
	commented = regexp.MustCompile(`(?m)((?:^//.*\n)*)^func (\w+)\(`)
)

func has[V any](all map[string]V, name string) bool {
	_, found := all[name]
	return found
}

func TestTheDocumentsNameTestsAndPathsThatExist(t *testing.T) {
	tests := testComments(t)
	for document, atLeast := range map[string]struct{ paths, tests int }{
		"ARCHITECTURE.md": {30, 13},
		"CONTRIBUTING.md": {30, 0},
	} {
		paths, proofs := 0, 0
		for _, name := range quoted.FindAllStringSubmatch(read(t, document), -1) {
			switch {
			case testName.MatchString(name[1]):
				proofs++
				require.True(t, has(tests, name[1]), "%s: there is no test %s", document, name[1])
			case pathName.MatchString(name[1]):
				paths++
				_, err := os.Stat(filepath.Join(root, name[1]))
				require.NoError(t, err, "%s: there is no %s", document, name[1])
			}
		}
		require.Greater(t, paths, atLeast.paths, document)
		require.GreaterOrEqual(t, proofs, atLeast.tests, document)
	}
}

// A name that is of no test is left out, or runs nothing, and nobody sees it.
func TestWhatIsRunByNameExists(t *testing.T) {
	tests := testComments(t)
	for _, file := range []string{".ci/night", "test/KNOWN.md"} {
		for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(read(t, file), -1) {
			require.True(t, has(tests, name), "%s: there is no test %s", file, name)
		}
	}
}

// The comment of each test that proves an invariant names it, so that nobody
// changes the test unaware.
func TestEveryInvariantHasATestThatNamesIt(t *testing.T) {
	tests := testComments(t)
	invariants := regexp.MustCompile(`(?m)^\| (\d+) \|.*$`).FindAllStringSubmatch(section(t, read(t, "ARCHITECTURE.md"), "Invariants"), -1)
	require.Len(t, invariants, 13)
	for i, row := range invariants {
		require.Equal(t, strconv.Itoa(i+1), row[1])
		proofs := 0
		for _, name := range quoted.FindAllStringSubmatch(row[0], -1) {
			if testName.MatchString(name[1]) {
				proofs++
				require.Regexp(t, `Invariants? [\d, and]*\b`+row[1]+`\b`, tests[name[1]], "the comment of %s", name[1])
			}
		}
		require.Positive(t, proofs, row[0])
	}
}

// testComments returns the comment above each test, by the name of the test.
func testComments(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files(t, ".go", func(name, text string) {
		if strings.HasSuffix(name, "_test.go") {
			for _, match := range commented.FindAllStringSubmatch(text, -1) {
				all[match[2]] += match[1]
			}
		}
	})
	return all
}

// Each folder of the product has a row. It imports only what stands in that row or
// below it, and nothing of another module.
func TestImportsGoDownTheTable(t *testing.T) {
	row := map[string]int{}
	for i, line := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(section(t, read(t, "ARCHITECTURE.md"), "Rooms"), -1) {
		for _, folder := range quoted.FindAllStringSubmatch(line[1], -1) {
			row[folder[1]] = i + 1
		}
	}
	seen := map[string]bool{}
	files(t, ".go", func(name, text string) {
		folder := filepath.ToSlash(filepath.Dir(name))
		if strings.HasSuffix(name, "_test.go") || !isProduct(folder) {
			return
		}
		seen[folder] = true
		require.NotZero(t, row[folder], "%s has no row in ARCHITECTURE.md", folder)
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if imported, ours := strings.CutPrefix(path, module); ours && imported != "configs" {
				require.GreaterOrEqual(t, row[imported], row[folder], "%s imports %s", name, imported)
				require.False(t, otherModule(folder, imported), "%s imports %s", name, imported)
			}
		}
	})
	for folder := range row {
		require.True(t, seen[folder], "%s has a row, and no code", folder)
	}
}

// otherModule reports whether two folders belong to different modules.
func otherModule(folder, imported string) bool {
	modules := []string{"sync", "protect", "reload"}
	one, _, _ := strings.Cut(folder, "/")
	other, _, _ := strings.Cut(imported, "/")
	return one != other && slices.Contains(modules, one) && slices.Contains(modules, other)
}

// isProduct reports whether the code of a folder is part of the binary.
func isProduct(folder string) bool {
	if strings.HasSuffix(folder, "test") && strings.Contains(folder, "/internal/") {
		return false // what tests share
	}
	top, rest, _ := strings.Cut(folder, "/")
	switch top {
	case "cmd", "sync", "protect", "reload":
		return true
	case "internal":
		return rest != "documents" && rest != "app/pins" // which hold tests alone
	default:
		return false
	}
}
