package pins_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/app"
	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/inspect/reported"
)

// Scripts read these fields with -o json and -o yaml. A ? marks a field that is
// left out when it is empty.
func TestFieldsOfOutputs(t *testing.T) {
	var out strings.Builder
	for _, command := range []struct {
		name   string
		prints any
	}{
		{"approve", reported.Approved{}},
		{"check: problems, notes", config.Problem{}},
		{"consumers", inspect.Consumers{}},
		{"explain", inspect.Explanation{}},
		{"history", reported.History{}},
		{"plan", inspect.Plan{}},
		{"release, prune", inspect.Leftovers{}},
		{"status", reported.Report{}},
		{"version", app.BuildInfo{}},
		{"who-can-edit", inspect.Editors{}},
	} {
		before := out.Len()
		_, _ = fmt.Fprintln(&out, command.name)
		writeFields(t, &out, "", reflect.TypeOf(command.prints))
		require.Greater(t, strings.Count(out.String()[before:], "\n"), 2, command.name)
	}
	requireGolden(t, "outputs.txt", out.String())
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// writeFields writes a line for each field that JSON of a value has.
func writeFields(t *testing.T, out *strings.Builder, at string, of reflect.Type) {
	t.Helper()
	for field := range of.Fields() {
		tag, named := field.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case field.Anonymous && !named:
			writeFields(t, out, at, field.Type)
			continue
		case !field.IsExported() || name == "-":
			continue
		}
		require.NotEmpty(t, name, "%s.%s has no name in JSON", of, field.Name)
		optional := ""
		if strings.Contains(options, "omit") {
			optional = "?"
		}
		writeField(t, out, at+"."+name+optional, field.Type)
	}
}

func writeField(t *testing.T, out *strings.Builder, path string, of reflect.Type) {
	t.Helper()
	switch {
	case of.Kind() == reflect.Pointer:
		writeField(t, out, path, of.Elem())
		return
	case of == reflect.TypeFor[time.Time](), of == reflect.TypeFor[metav1.Time]():
		_, _ = fmt.Fprintf(out, "  %s: time\n", path)
		return
	}
	require.False(t, of.Implements(jsonMarshaler) || of.Implements(textMarshaler), "%s: say here how %s looks in JSON", path, of)
	switch of.Kind() {
	case reflect.Slice:
		writeField(t, out, path+"[]", of.Elem())
	case reflect.Map:
		require.Equal(t, reflect.String, of.Key().Kind(), path)
		writeField(t, out, path+"{}", of.Elem())
	case reflect.Struct:
		writeFields(t, out, path, of)
	default:
		_, _ = fmt.Fprintf(out, "  %s: %s\n", path, of.Kind())
	}
}
