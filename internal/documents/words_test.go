package documents

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// literary are words that readers in a hurry stumble over. CONTRIBUTING.md asks
// for plain English.
var literary = regexp.MustCompile(`(?i)\b(anew|heed|heeds|heeded|whoever|whom|lest|thereby|for\s+want\s+of|be\s+it|of\s+late|hardly\s+meant)\b`)

// unwritten are the folders whose Go code still contains such words; "/..." means
// with subfolders. Rewrite a folder, then delete its line; add none.
var unwritten = []string{
	"test/bench/...",
	"test/canary",
	"test/cel",
	"test/chaos",
	"test/cluster",
	"test/deploy",
	"test/e2e/gaps",
	"test/e2e/kinds",
	"test/e2e/property",
	"test/e2e/protect",
	"test/e2e/reload",
	"test/e2e/service",
	"test/e2e/sync",
	"test/node",
	"test/page",
	"test/rollouts",
	"test/scenario",
}

func TestDocumentsUsePlainWords(t *testing.T) {
	documents := 0
	for _, extension := range []string{".md", ".yaml", ".yml", ".txt", ".tpl", ".sh"} {
		files(t, extension, func(name, text string) {
			if strings.Contains(name, "testdata/") {
				return
			}
			documents++
			require.Empty(t, literary.FindAllString(text, -1), name)
		})
	}
	require.Greater(t, documents, 40)
}

func TestCodeUsesPlainWords(t *testing.T) {
	used := map[string]bool{}
	files(t, ".go", func(name, text string) {
		words := literary.FindAllString(prose(t, name, text), -1)
		if len(words) == 0 || name == "internal/documents/words_test.go" {
			return
		}
		at := slices.IndexFunc(unwritten, func(entry string) bool { return covers(entry, path.Dir(name)) })
		require.GreaterOrEqual(t, at, 0, "%s uses %s", name, strings.Join(words, ", "))
		used[unwritten[at]] = true
	})
	for _, entry := range unwritten {
		require.True(t, used[entry], "%s is rewritten: delete its line from unwritten", entry)
	}
}

func covers(entry, folder string) bool {
	top, below := strings.CutSuffix(entry, "/...")
	return folder == top || below && strings.HasPrefix(folder, top+"/")
}

// prose returns the comments and the strings of a Go file.
func prose(t *testing.T, name, text string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
	require.NoError(t, err)
	var all strings.Builder
	for _, group := range file.Comments {
		all.WriteString(group.Text() + "\n")
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			all.WriteString(literal.Value + "\n")
		}
		return true
	})
	return all.String()
}

func TestLiteraryWordsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"made anew, for want\nof it":                        2,
		"Whoever reads, to whom it may be of late a burden": 3,
		"be it a Secret, lest it is lost":                   2,
		"renew it; a later one; the best; may be itself":    0,
	} {
		require.Len(t, literary.FindAllString(text, -1), want, text)
	}
	require.Len(t, literary.FindAllString(prose(t, "x.go", "package x\n\n// Whoever.\nvar whom = \"anew\"\n"), -1), 2, "comments and strings, not names")
}
