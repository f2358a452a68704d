package config_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headwater-k8s/headwater/configs"
	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/notify"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/validate"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// place is one node of the schema, with $ref followed.
type place map[string]any

type schemaFile struct{ root place }

func readSchema(t *testing.T) schemaFile {
	t.Helper()
	var root place
	require.NoError(t, json.Unmarshal(configs.Schema(), &root))
	return schemaFile{root: root}
}

func (s schemaFile) follow(value any) place {
	resolved := place{}
	here, _ := value.(map[string]any)
	if ref, ok := here["$ref"].(string); ok {
		defs := s.root["$defs"].(map[string]any)
		maps.Copy(resolved, s.follow(defs[strings.TrimPrefix(ref, "#/$defs/")]))
	}
	maps.Copy(resolved, here)
	return resolved
}

func (s schemaFile) child(p place, name string) place {
	properties, _ := p["properties"].(map[string]any)
	return s.follow(properties[name])
}

func (s schemaFile) at(path ...string) place {
	p := s.root
	for _, name := range path {
		if name == "[]" {
			p = s.follow(p["items"])
			continue
		}
		p = s.child(p, name)
	}
	return p
}

func TestSchemaAndTypesHaveTheSameKeys(t *testing.T) {
	s := readSchema(t)
	s.requireSame(t, "", reflect.TypeFor[config.Config](), s.root)
}

func (s schemaFile) requireSame(t *testing.T, at string, typ reflect.Type, p place) {
	t.Helper()
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[metav1.Duration]() {
		require.Equal(t, "go-duration", p["format"], at)
		return
	}
	if typ == reflect.TypeFor[intstr.IntOrString]() {
		require.Equal(t, []any{"integer", "string"}, p["type"], at)
		return
	}
	switch typ.Kind() {
	case reflect.Struct:
		s.requireSameStruct(t, at, typ, p)
	case reflect.Slice:
		require.Equal(t, "array", p["type"], at)
		s.requireSame(t, at+"[]", typ.Elem(), s.follow(p["items"]))
	case reflect.Map:
		require.Equal(t, "object", p["type"], at)
		s.requireSame(t, at+"[*]", typ.Elem(), s.follow(p["additionalProperties"]))
	case reflect.String:
		require.True(t, p["type"] == "string" || p["enum"] != nil || p["const"] != nil, "%s must be text", at)
	case reflect.Interface:
		require.Empty(t, p, "%s must be open", at)
	case reflect.Bool:
		require.Equal(t, "boolean", p["type"], at)
	case reflect.Int:
		require.Equal(t, "integer", p["type"], at)
	case reflect.Float64:
		require.Equal(t, "number", p["type"], at)
	default:
		require.Failf(t, "no such type in the schema", "%s: %s", at, typ)
	}
}

func (s schemaFile) requireSameStruct(t *testing.T, at string, typ reflect.Type, p place) {
	t.Helper()
	require.Equal(t, "object", p["type"], at)
	require.Equal(t, false, p["additionalProperties"], "%s must be closed", at)
	inType := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(typ) {
		if f.Anonymous {
			continue // its fields are the struct's own
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		require.NotEmpty(t, name, "%s.%s needs a json tag", at, f.Name)
		if name != "-" {
			inType[name] = f.Type
		}
	}
	properties, _ := p["properties"].(map[string]any)
	require.ElementsMatch(t, slices.Collect(maps.Keys(inType)), slices.Collect(maps.Keys(properties)), "keys of %q", at)
	for name, fieldType := range inType {
		child := s.child(p, name)
		require.NotEmpty(t, child["description"], "%s.%s needs a description", at, name)
		s.requireSame(t, at+"."+name, fieldType, child)
	}
}

// Every default that the schema shows is the one that a parsed file gets, and
// every default that a parsed file gets is shown.
func TestSchemaShowsTheDefaults(t *testing.T) {
	s := readSchema(t)
	raw, err := json.Marshal(parse(t, oneRule("  sync: {}", "  protect: {}", "  reload: {}")))
	require.NoError(t, err)
	var parsed map[string]any
	require.NoError(t, json.Unmarshal(raw, &parsed))
	rule := parsed["rules"].([]any)[0].(map[string]any)
	for _, section := range []string{"sync", "protect", "reload"} {
		s.requireDefaults(t, "rules[]."+section, rule[section], s.at("rules", "[]", section))
		s.requireDefaults(t, section, parsed[section], s.at(section))
	}
}

func TestSchemaShowsTheTopicsThatAreReportedByDefault(t *testing.T) {
	receiver := parse(t, append(oneRule("  sync: {}"), []byte("notify: [{urlFile: /etc/headwater-notify/url}]\n")...)).Notify[0]
	require.Equal(t, readSchema(t).at("notify", "[]", "on")["default"], texts(receiver.On...))
}

func TestSchemaShowsTheDefaultsOfASectionForNamespaces(t *testing.T) {
	raw, err := json.Marshal(parse(t, file("reload: {namespaces: [{}]}")).Reload.Namespaces[0])
	require.NoError(t, err)
	var parsed map[string]any
	require.NoError(t, json.Unmarshal(raw, &parsed))
	s := readSchema(t)
	s.requireDefaults(t, "reload.namespaces[]", parsed, s.at("reload", "namespaces", "[]"))
}

func (s schemaFile) requireDefaults(t *testing.T, at string, value any, p place) {
	t.Helper()
	if inner, ok := value.(map[string]any); ok {
		properties, _ := p["properties"].(map[string]any)
		for name := range properties {
			s.requireDefaults(t, at+"."+name, inner[name], s.child(p, name))
		}
		return
	}
	shown := p["default"]
	if value == nil {
		require.Empty(t, shown, "the default of %s", at)
		return
	}
	require.Equal(t, shown, value, "the default of %s", at)
}

func TestSchemaListsEveryValue(t *testing.T) {
	s := readSchema(t)
	rule := func(path ...string) []any {
		return s.at(append([]string{"rules", "[]"}, path...)...)["enum"].([]any)
	}
	require.Equal(t, texts(object.Kinds...), rule("source", "kind"))
	require.Equal(t, texts(syncspec.ConflictSkip, syncspec.ConflictAdoptIfEqual, syncspec.ConflictOverwrite), rule("sync", "onConflict"))
	for _, key := range []string{"onSourceDeleted", "onRuleRemoved", "onNamespaceUnmatched"} {
		require.Equal(t, texts(syncspec.Retain, syncspec.Delete), rule("sync", key))
	}
	require.Equal(t, texts(validate.Formats()...), rule("validate", "[]", "is"))
	require.Equal(t, texts(protectspec.Operations()...), rule("protect", "operations", "[]"))
	require.Equal(t, texts(protectspec.Enforce, protectspec.Warn, protectspec.Audit), rule("protect", "mode"))
	require.Equal(t, texts(protectspec.Revert, protectspec.Deny), rule("protect", "clones"))
	require.Equal(t, texts(reloadspec.Auto, reloadspec.Restart, reloadspec.Refresh, reloadspec.None, reloadspec.Never), rule("reload", "action"))
	require.Equal(t, texts(protectspec.EngineWebhook, protectspec.EnginePolicy, protectspec.EngineBoth), s.at("protect", "engine")["enum"])
	require.Equal(t, texts(reloadspec.Reloader, reloadspec.Wave), s.at("reload", "compatibility", "[]")["enum"])
	require.Equal(t, texts(reloadspec.Auto, reloadspec.Restart, reloadspec.Refresh), s.at("reload", "namespaces", "[]", "action")["enum"])
	require.Equal(t, texts(object.Kinds...), s.at("reload", "namespaces", "[]", "objects", "kinds", "[]")["enum"])
	require.Equal(t, texts(notify.Topics()...), s.at("notify", "[]", "on", "[]")["enum"])
	require.Equal(t, config.APIVersion, s.at("apiVersion")["const"])
	require.Equal(t, config.Kind, s.at("kind")["const"])
}

func texts[T ~string](values ...T) []any {
	texts := make([]any, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return texts
}
