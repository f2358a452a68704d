package pins_test

import (
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const modulePath = "github.com/headwater-k8s/headwater"

// origin is where a variable or a field gets its values from.
type origin struct {
	expr ast.Expr
	// result is which one, where expr is a call with several results.
	result int
	// elements is true where the values are the elements of expr.
	elements bool
}

// source is the product's own code, with its types.
type source struct {
	info  *types.Info
	files []*ast.File
	// paths are the import paths of the files' packages.
	paths map[*ast.File]string
	// origins are those of variables and fields, calls those of functions, and
	// functions their declarations.
	origins   map[types.Object][]origin
	calls     map[types.Object][]*ast.CallExpr
	functions map[types.Object]*ast.FuncDecl
	// params says of which function a variable is the parameter, and which one.
	params map[types.Object]param
	// constants are those of each named type of texts.
	constants map[*types.TypeName][]string
}

type param struct {
	of    types.Object
	index int
}

// readSource reads the code once for all tests.
var readSource = sync.OnceValues(func() (*source, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{join .GoFiles \",\"}}",
		"./cmd/...", "./internal/...", "./sync/...", "./protect/...", "./reload/...")
	list.Dir, list.Stderr = "../../..", os.Stderr
	// The flags of `make build`, whatever those of this test: what it compiled is in Go's cache.
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	s := &source{
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{},
		},
		origins: map[types.Object][]origin{}, calls: map[types.Object][]*ast.CallExpr{}, functions: map[types.Object]*ast.FuncDecl{},
		params: map[types.Object]param{}, paths: map[*ast.File]string{}, constants: map[*types.TypeName][]string{},
	}
	files := token.NewFileSet()
	exports, ours := map[string]string{}, map[string]*types.Package{}
	compiled := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	checker := types.Config{Importer: importing(func(path string) (*types.Package, error) {
		if one, found := ours[path]; found {
			return one, nil
		}
		return compiled.Import(path)
	})}
	// A package comes after those that it imports.
	for line := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Split(line, "\t")
		path := fields[0]
		exports[path] = fields[1]
		if path != modulePath && !strings.HasPrefix(path, modulePath+"/") || isTestPackage(path) {
			continue
		}
		var parsed []*ast.File
		for name := range strings.SplitSeq(fields[3], ",") {
			file, err := parser.ParseFile(files, filepath.Join(fields[2], name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			parsed, s.paths[file] = append(parsed, file), path
		}
		if ours[path], err = checker.Check(path, files, parsed, s.info); err != nil {
			return nil, err
		}
		s.files = append(s.files, parsed...)
	}
	for _, file := range s.files {
		ast.Inspect(file, s.index)
	}
	return s, nil
})

// isTestPackage reports whether only tests use a package.
func isTestPackage(path string) bool {
	return strings.Contains(path, "/internal/") && strings.HasSuffix(path, "test")
}

// sourceOf is the product's code.
func sourceOf(t *testing.T) *source {
	t.Helper()
	s, err := readSource()
	require.NoError(t, err)
	require.Greater(t, len(s.files), 100)
	return s
}

// importing is a types.Importer.
type importing func(path string) (*types.Package, error)

func (i importing) Import(path string) (*types.Package, error) { return i(path) }

// index notes what node says about where values come from.
func (s *source) index(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.FuncDecl:
		function := s.info.Defs[n.Name]
		s.functions[function] = n
		index := 0
		for _, field := range n.Type.Params.List {
			for _, name := range field.Names {
				s.params[s.info.Defs[name]] = param{function, index}
				index++
			}
		}
	case *ast.CallExpr:
		if called := s.object(n.Fun); called != nil {
			s.calls[called] = append(s.calls[called], n)
		}
	case *ast.AssignStmt:
		s.assigned(n.Lhs, n.Rhs)
	case *ast.ValueSpec:
		names := make([]ast.Expr, len(n.Names))
		for i, name := range n.Names {
			names[i] = name
			s.constant(name)
		}
		s.assigned(names, n.Values)
	case *ast.RangeStmt:
		if n.Value != nil {
			s.from(n.Value, origin{expr: n.X, elements: true})
		}
	case *ast.CompositeLit:
		s.composed(n)
	}
	return true
}

func (s *source) constant(name *ast.Ident) {
	declared, ok := s.info.Defs[name].(*types.Const)
	if !ok || declared.Val().Kind() != constant.String {
		return
	}
	if named := textType(declared.Type()); named != nil {
		s.constants[named] = append(s.constants[named], constant.StringVal(declared.Val()))
	}
}

// textType is the type's name if it is the product's own type of texts.
func textType(of types.Type) *types.TypeName {
	named, ok := of.(*types.Named)
	if !ok || named.Obj().Pkg() == nil || !strings.HasPrefix(named.Obj().Pkg().Path(), modulePath) {
		return nil
	}
	if basic, ok := named.Underlying().(*types.Basic); !ok || basic.Info()&types.IsString == 0 {
		return nil
	}
	return named.Obj()
}

func (s *source) assigned(left, right []ast.Expr) {
	for i, to := range left {
		switch {
		case len(left) == len(right):
			s.from(to, origin{expr: right[i]})
		case len(right) == 1:
			s.from(to, origin{expr: right[0], result: i})
		}
	}
}

func (s *source) from(to ast.Expr, o origin) {
	if object := s.object(to); object != nil {
		s.origins[object] = append(s.origins[object], o)
	}
}

// composed notes the fields of a struct.
func (s *source) composed(literal *ast.CompositeLit) {
	structure := structOf(s.info.TypeOf(literal))
	if structure == nil {
		return
	}
	for i, element := range literal.Elts {
		if pair, keyed := element.(*ast.KeyValueExpr); keyed {
			s.from(pair.Key, origin{expr: pair.Value})
			continue
		}
		field := structure.Field(i).Origin()
		s.origins[field] = append(s.origins[field], origin{expr: element})
	}
}

func structOf(of types.Type) *types.Struct {
	if of == nil {
		return nil
	}
	if pointer, ok := of.Underlying().(*types.Pointer); ok {
		of = pointer.Elem()
	}
	structure, _ := of.Underlying().(*types.Struct)
	return structure
}

// hasFields recognises a struct of the product wherever it is declared.
func hasFields(of types.Type, names ...string) bool {
	structure := structOf(of)
	if structure == nil {
		return false
	}
	found := map[string]bool{}
	for field := range structure.Fields() {
		found[field.Name()] = true
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !found[name] })
}

// originsOf is where a variable, a field or a parameter gets its values from.
func (s *source) originsOf(object types.Object) []origin {
	origins := slices.Clone(s.origins[object])
	if parameter, is := s.params[object]; is {
		for _, call := range s.calls[parameter.of] {
			if parameter.index < len(call.Args) {
				origins = append(origins, origin{expr: call.Args[parameter.index]})
			}
		}
	}
	return origins
}

// object is what expr names: a variable, a field, or a function.
func (s *source) object(expr ast.Expr) types.Object {
	var object types.Object
	switch e := ast.Unparen(expr).(type) {
	case *ast.Ident:
		object = s.info.ObjectOf(e)
	case *ast.SelectorExpr:
		object = s.info.ObjectOf(e.Sel)
	case *ast.IndexExpr:
		return s.object(e.X)
	}
	switch o := object.(type) {
	case *types.Var:
		return o.Origin()
	case *types.Func:
		return o.Origin()
	}
	return nil
}
