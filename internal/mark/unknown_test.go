package mark

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnknownAnnotations(t *testing.T) {
	require.Empty(t, Unknown(map[string]string{Reload: "Off", Baseline: "v2:", "team.example.com/relaod": "x", "headwater.dev": "x"}))
	require.Equal(t, []string{Domain + "a", Domain + "b", Domain + "c"},
		Unknown(map[string]string{Domain + "c": "", Domain + "b": "", Domain + "d": "", Domain + "a": "", Reload: "Off"}))
}

// A mark of Headwater that is missing in known would be reported on each workload
// that bears it.
func TestEveryMarkIsKnown(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	marks := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			sum, is := node.(*ast.BinaryExpr)
			if !is || sum.Op != token.ADD {
				return true
			}
			domain, named := sum.X.(*ast.Ident)
			literal, text := sum.Y.(*ast.BasicLit)
			if named && text && domain.Name == "Domain" {
				mark, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				require.Contains(t, known, Domain+mark, "add it to known in unknown.go")
				marks++
			}
			return true
		})
	}
	require.Len(t, known, marks)
}
