package pins_test

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The web page, ConfigMaps that the service writes, and everything else that the
// code writes or reads as JSON: the shape of each such struct that is no part of
// another one, whatever its name. Left out are the configuration file, which
// configs pins, what TestFieldsOfOutputs has, and what migrate reads of others.
func TestShapesOfJSON(t *testing.T) {
	s := sourceOf(t)
	shapes := shapes{parts: map[string]bool{}}
	wholes := map[string]bool{}
	for _, file := range s.files {
		elsewhere := strings.Contains(s.paths[file]+"/", "/internal/inspect/") || strings.Contains(s.paths[file]+"/", "/internal/migrate/")
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, ok := node.(*ast.StructType); ok {
				if structure, ok := s.info.TypeOf(literal).(*types.Struct); ok && inJSON(structure) {
					whole := strings.Join(shapes.fields("", structure), "\n")
					wholes[whole] = wholes[whole] || !elsewhere
				}
			}
			return true
		})
	}
	var all []string
	for whole, here := range wholes {
		if here && !shapes.parts[whole] && !strings.Contains(whole, ".apiVersion:") {
			all = append(all, whole)
		}
	}
	require.Greater(t, len(all), 10)
	slices.Sort(all)
	requireGolden(t, "structs.txt", strings.Join(all, "\n\n"))
}

// inJSON reports whether a struct has names of fields for JSON.
func inJSON(structure *types.Struct) bool {
	for i := range structure.NumFields() {
		if _, named := reflect.StructTag(structure.Tag(i)).Lookup("json"); named {
			return true
		}
	}
	return false
}

// shapes knows those of structs that are parts of others.
type shapes struct{ parts map[string]bool }

// part has a line for each field at a path.
func (s shapes) part(at string, structure *types.Struct) []string {
	s.parts[strings.Join(s.fields("", structure), "\n")] = true
	return s.fields(at, structure)
}

// fields has a line for each field at a path.
func (s shapes) fields(at string, structure *types.Struct) []string {
	var lines []string
	for i := range structure.NumFields() {
		field := structure.Field(i)
		tag, named := reflect.StructTag(structure.Tag(i)).Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := structOf(field.Type())
		switch {
		case field.Embedded() && !named && inner != nil:
			lines = append(lines, s.part(at, inner)...)
			continue
		case !named || name == "-":
			continue
		case strings.Contains(options, "omit"):
			name += "?"
		}
		lines = append(lines, s.field(at+"."+name, field.Type())...)
	}
	return lines
}

func (s shapes) field(path string, of types.Type) []string {
	switch of := of.(type) {
	case *types.Pointer:
		return s.field(path, of.Elem())
	case *types.Alias:
		return s.field(path, types.Unalias(of))
	case *types.Slice:
		return s.field(path+"[]", of.Elem())
	case *types.Map:
		return s.field(path+"{}", of.Elem())
	case *types.Struct:
		return s.part(path, of)
	case *types.Named:
		name := of.Obj()
		switch structure, isStruct := of.Underlying().(*types.Struct); {
		case name.Pkg() == nil || !strings.HasPrefix(name.Pkg().Path(), modulePath):
			return []string{fmt.Sprintf("%s: %s", path, types.TypeString(of, (*types.Package).Name))}
		case isStruct && inJSON(structure):
			return s.part(path, structure)
		case marshals(of):
			return []string{path + ": its own text"}
		default:
			return s.field(path, of.Underlying())
		}
	default:
		return []string{fmt.Sprintf("%s: %s", path, of)}
	}
}

// marshals reports whether a type says itself how it looks in JSON.
func marshals(of types.Type) bool {
	methods := types.NewMethodSet(types.NewPointer(of))
	return methods.Lookup(nil, "MarshalJSON") != nil || methods.Lookup(nil, "MarshalText") != nil
}
