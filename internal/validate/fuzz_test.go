package validate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/validate"
)

// Whatever the value: no panic, and no four bytes of it in a message.
func FuzzProblems(f *testing.F) {
	v := compile(f,
		validate.Check{Key: "k", Is: validate.YAML}, validate.Check{Key: "k", Is: validate.JSON}, validate.Check{Key: "k", Is: validate.TOML},
		validate.Check{Key: "k", Is: validate.PEM}, validate.Check{Key: "k", Is: validate.Certificate}, validate.Check{Key: "k", Is: validate.DockerConfig},
		validate.Check{Key: "k", Is: validate.Regex, Pattern: "^(a|b)+$"},
		validate.Check{Key: "k", Schema: schema(f, `{"$ref": "#/$defs/n", "$defs": {"n": {"type": ["object", "array", "integer"], "required": ["p"],
			"properties": {"p": {"format": "date-time", "const": 7}}, "additionalProperties": {"$ref": "#/$defs/n"}, "items": {"$ref": "#/$defs/n"},
			"propertyNames": {"maxLength": 2}, "uniqueItems": true, "unevaluatedProperties": false}}}`)},
	)
	for _, seed := range []string{
		"a: &a [*a]", "{\"§\": 1, \"§\": 2}", "a = §\n", "? {§: 1}\n: §\n", "§: [§, {§: §}]", "<<: §", "!!int §", "%TAG § §",
		"-----BEGIN §-----\n§\n-----END §-----", "{\"auths\": {\"§\": {\"auth\": \"§\"}}}", "!!binary §", "1e999999", "- §\n- §",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const secret = "\x01qZ7~"
		for _, hidden := range []string{secret, "Xq9zWv"} {
			value := strings.ReplaceAll(text, "§", hidden)
			for _, problem := range v.Judge(object.Content{Data: map[string][]byte{"k": []byte(value)}}, now, now).Problems {
				for i := 0; i+4 <= len(hidden); i++ {
					require.NotContains(t, problem.String(), hidden[i:i+4])
				}
			}
		}
	})
}
