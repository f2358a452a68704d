package pins_test

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// Alerts, scripts and `kubectl get events` select Events by reason and type. Where
// the reason is a variable of the product's own type, each constant of that type
// is listed, also those for which no Event is recorded.
func TestReasonsOfEvents(t *testing.T) {
	s := sourceOf(t)
	found := eventTypes{T: t, source: s, types: map[string]map[string]bool{}}
	for _, file := range s.files {
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
				found.in(function.Body)
			}
		}
	}
	require.Greater(t, len(found.types), 20)
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(found.types)) {
		lines = append(lines, reason+": "+strings.Join(slices.Sorted(maps.Keys(found.types[reason])), ", "))
	}
	requireGolden(t, "events.txt", strings.Join(lines, "\n"))
}

// eventTypes are the types of Event by reason.
type eventTypes struct {
	*testing.T
	*source

	types map[string]map[string]bool
}

func (e eventTypes) add(reason ast.Expr, kinds []string) {
	for _, text := range e.texts(reason) {
		if e.types[text] == nil {
			e.types[text] = map[string]bool{}
		}
		for _, kind := range kinds {
			e.types[text][kind] = true
		}
	}
}

// in finds the reasons in a body. An Event has the type that the innermost block
// around its reason gives it: `event.Warning = …` in that block or one around it.
func (e eventTypes) in(body *ast.BlockStmt) {
	var around []ast.Node
	ast.Inspect(body, func(node ast.Node) bool {
		if node == nil {
			around = around[:len(around)-1]
			return true
		}
		around = append(around, node)
		switch n := node.(type) {
		case *ast.CompositeLit:
			if !isEvent(e.info.TypeOf(n)) {
				break
			}
			fields := map[string]ast.Expr{}
			for _, element := range n.Elts {
				pair, keyed := element.(*ast.KeyValueExpr)
				require.True(e, keyed, "an Event without names of fields")
				fields[pair.Key.(*ast.Ident).Name] = pair.Value
			}
			if reason := fields["Reason"]; reason != nil {
				kinds := e.kindIn(around)
				if warning := fields["Warning"]; warning != nil {
					kinds = e.kind(warning)
				}
				e.add(reason, kinds)
			}
		case *ast.AssignStmt:
			if reason := e.set(n, "Reason"); reason != nil {
				e.add(reason, e.kindIn(around))
			}
		}
		return true
	})
}

// isEvent recognises the product's type of Events wherever it is declared.
func isEvent(of types.Type) bool { return hasFields(of, "Reason", "Warning", "About", "Note") }

// set is what the statement sets a field of an Event to; nil if it does not.
func (e eventTypes) set(statement *ast.AssignStmt, field string) ast.Expr {
	for i, left := range statement.Lhs {
		selector, ok := left.(*ast.SelectorExpr)
		if ok && selector.Sel.Name == field && isEvent(e.info.TypeOf(selector.X)) && i < len(statement.Rhs) {
			return statement.Rhs[i]
		}
	}
	return nil
}

// kindIn is the type that the blocks around a reason give the Event.
func (e eventTypes) kindIn(around []ast.Node) []string {
	for _, node := range slices.Backward(around) {
		var statements []ast.Stmt
		switch n := node.(type) {
		case *ast.BlockStmt:
			statements = n.List
		case *ast.CaseClause:
			statements = n.Body
		}
		for _, statement := range statements {
			if assignment, ok := statement.(*ast.AssignStmt); ok {
				if warning := e.set(assignment, "Warning"); warning != nil {
					return e.kind(warning)
				}
			}
		}
	}
	return []string{corev1.EventTypeNormal}
}

// kind is the type of an Event whose Warning is so; both where that depends.
func (e eventTypes) kind(warning ast.Expr) []string {
	value := e.info.Types[warning].Value
	switch {
	case value == nil:
		return []string{corev1.EventTypeNormal, corev1.EventTypeWarning}
	case value.String() == "true":
		return []string{corev1.EventTypeWarning}
	default:
		return []string{corev1.EventTypeNormal}
	}
}
