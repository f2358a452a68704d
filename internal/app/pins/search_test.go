package pins_test

import (
	"go/ast"
	"go/constant"
	"go/types"
	"maps"
	"slices"
)

// anything stands for a value that the source does not tell.
const anything = "*"

// texts are the values that expr may have, as far as the source tells: of one of
// the product's own types all constants of that type.
func (s *source) texts(expr ast.Expr) []string {
	search := search{source: s, seen: map[step]bool{}, found: map[string]bool{}}
	search.follow(origin{expr: expr})
	return slices.Sorted(maps.Keys(search.found))
}

// search finds the values that an expression may have.
type search struct {
	*source

	seen  map[step]bool
	found map[string]bool
}

// step is one that a search takes once: to a variable, or a result of a function.
type step struct {
	to     types.Object
	result int
}

func (s search) follow(o origin) {
	expr := ast.Unparen(o.expr)
	if o.elements {
		s.followElements(expr)
		return
	}
	if value := s.info.Types[expr].Value; value != nil && value.Kind() == constant.String {
		s.found[constant.StringVal(value)] = true
		return
	}
	if named := textType(s.info.TypeOf(expr)); named != nil && len(s.constants[named]) > 0 {
		for _, value := range s.constants[named] {
			s.found[value] = true
		}
		return
	}
	switch e := expr.(type) {
	case *ast.BinaryExpr:
		for _, left := range s.part(e.X) {
			for _, right := range s.part(e.Y) {
				s.found[left+right] = true
			}
		}
	case *ast.CallExpr:
		s.followCall(e, o.result)
	default:
		s.followObject(s.object(expr))
	}
}

// part is what a part of an expression may be.
func (s search) part(expr ast.Expr) []string {
	within := search{source: s.source, seen: s.seen, found: map[string]bool{}}
	within.follow(origin{expr: expr})
	return slices.Sorted(maps.Keys(within.found))
}

func (s search) followCall(call *ast.CallExpr, result int) {
	if s.info.Types[call.Fun].IsType() {
		s.follow(origin{expr: call.Args[0]})
		return
	}
	called := s.object(call.Fun)
	declared := s.functions[called]
	if declared == nil || declared.Body == nil {
		s.found[anything] = true
		return
	}
	if s.seen[step{called, result}] {
		return
	}
	s.seen[step{called, result}] = true
	ast.Inspect(declared.Body, func(node ast.Node) bool {
		if _, other := node.(*ast.FuncLit); other {
			return false
		}
		if returned, ok := node.(*ast.ReturnStmt); ok {
			if result < len(returned.Results) {
				s.follow(origin{expr: returned.Results[result]})
			} else {
				s.found[anything] = true
			}
		}
		return true
	})
}

// followObject follows a variable or field to all that it is set to.
func (s search) followObject(object types.Object) {
	origins := s.originsOf(object)
	if object == nil || len(origins) == 0 {
		s.found[anything] = true
		return
	}
	if s.seen[step{to: object}] {
		return
	}
	s.seen[step{to: object}] = true
	for _, one := range origins {
		s.follow(one)
	}
}

func (s search) followElements(expr ast.Expr) {
	literal, is := expr.(*ast.CompositeLit)
	if !is {
		if object := s.object(expr); object != nil && !s.seen[step{object, -1}] {
			s.seen[step{object, -1}] = true
			for _, one := range s.origins[object] {
				if _, is := ast.Unparen(one.expr).(*ast.CompositeLit); is {
					s.followElements(ast.Unparen(one.expr))
					return
				}
			}
		}
		s.found[anything] = true
		return
	}
	for _, element := range literal.Elts {
		if pair, keyed := element.(*ast.KeyValueExpr); keyed {
			element = pair.Value
		}
		s.follow(origin{expr: element})
	}
}
