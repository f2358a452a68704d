package validate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/validate"
)

func TestAFaultyCheckIsReportedWithItsPath(t *testing.T) {
	object := map[string]any{"type": "object"}
	for name, test := range map[string]struct {
		check validate.Check
		path  string
		want  string
	}{
		"no key":                         {validate.Check{Is: validate.YAML}, "[0].key", "set it to a key"},
		"a key that no object can have":  {validate.Check{Key: "a b", Is: validate.YAML}, "[0].key", "must consist of"},
		"neither a format nor a schema":  {validate.Check{Key: "k"}, "[0]", "add is or schema"},
		"a format that does not exist":   {validate.Check{Key: "k", Is: "XML"}, "[0].is", "supported values"},
		"Regex without a pattern":        {validate.Check{Key: "k", Is: validate.Regex}, "[0].pattern", "is missing"},
		"a pattern that is unbalanced":   {validate.Check{Key: "k", Is: validate.Regex, Pattern: "a)(b"}, "[0].pattern", "unexpected )"},
		"a pattern of another format":    {validate.Check{Key: "k", Is: validate.YAML, Pattern: "a"}, "[0].pattern", "only for the format Regex"},
		"a pattern of huge repetitions":  {validate.Check{Key: "k", Is: validate.Regex, Pattern: strings.Repeat("(a{900})", 20)}, "[0].pattern", "too large"},
		"minValidity of another format":  {validate.Check{Key: "k", Is: validate.PEM, MinValidity: hours(1)}, "[0].minValidity", "only for the format Certificate"},
		"a negative minValidity":         {validate.Check{Key: "k", Is: validate.Certificate, MinValidity: hours(-1)}, "[0].minValidity", "must not be negative"},
		"a schema of a certificate":      {validate.Check{Key: "k", Is: validate.Certificate, Schema: object}, "[0].schema", "cannot describe"},
		"a schema with an unknown type":  {validate.Check{Key: "k", Schema: map[string]any{"type": "text"}}, "[0].schema", "not a JSON Schema"},
		"a schema with a bad pattern":    {validate.Check{Key: "k", Schema: map[string]any{"pattern": "("}}, "[0].schema", "not a JSON Schema"},
		"a schema from the network":      {validate.Check{Key: "k", Schema: map[string]any{"$ref": "https://example.com/s.json"}}, "[0].schema", "may only lead to the schema itself"},
		"a schema from a file":           {validate.Check{Key: "k", Schema: map[string]any{"$ref": "file:///etc/passwd"}}, "[0].schema", "may only lead to the schema itself"},
		"a schema from a ConfigMap":      {validate.Check{Key: "k", Schema: map[string]any{"configMapKeyRef": map[string]any{"name": "s"}}}, "[0].schema", "write the schema here"},
		"a schema with dynamic anchors":  {validate.Check{Key: "k", Schema: map[string]any{"$dynamicAnchor": "n", "items": map[string]any{"$dynamicRef": "#n"}}}, "[0].schema", "use $ref"},
		"a schema that is far too large": {validate.Check{Key: "k", Schema: map[string]any{"description": strings.Repeat("x", 70_000)}}, "[0].schema", "are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := validate.Checks{test.check}.Validate(field.NewPath("validate"))
			require.Len(t, errs, 1)
			require.Equal(t, "validate"+test.path, errs[0].Field)
			require.ErrorContains(t, errs[0], test.want)
		})
	}
}

func TestValidChecksCompile(t *testing.T) {
	checks := validate.Checks{
		{Key: "a", Is: validate.YAML},
		{Key: "a", Is: validate.JSON},
		{Key: "a", Is: validate.TOML},
		{Key: "a", Is: validate.PEM},
		{Key: "a", Is: validate.Certificate, MinValidity: hours(168)},
		{Key: "a", Is: validate.DockerConfig},
		{Key: "a", Is: validate.Regex, Pattern: "^(debug|info)$"},
		{Key: "a", Schema: map[string]any{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/x", "definitions": map[string]any{"x": map[string]any{"type": "object"}}}},
	}
	require.Empty(t, checks.Validate(nil))
	_, err := validate.Compile(checks)
	require.NoError(t, err)
}

func hours(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Hour} }
