package documents

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// literary are words that readers in a hurry stumble over. CONTRIBUTING.md asks
// for plain English.
var literary = regexp.MustCompile(`(?i)\b(anew|heed|heeds|heeded|whoever|whom|lest|thereby|for\s+want\s+of|be\s+it|of\s+late|hardly\s+meant)\b`)

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
	files(t, ".go", func(name, text string) {
		if name != "internal/documents/words_test.go" {
			require.Empty(t, literary.FindAllString(prose(t, name, text), -1), name)
		}
	})
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
