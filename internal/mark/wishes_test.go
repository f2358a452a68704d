package mark

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestReloadOn(t *testing.T) {
	secret := func(name string) object.Ref { return object.Ref{Kind: object.Secret, Namespace: "ns", Name: name} }
	tests := map[string]struct {
		value  string
		want   []object.Ref
		reason string
	}{
		"one object":                     {value: "Secret/a", want: []object.Ref{secret("a")}},
		"both kinds, with blanks":        {value: " Secret/a , ConfigMap/b.c", want: []object.Ref{{Kind: object.ConfigMap, Namespace: "ns", Name: "b.c"}, secret("a")}},
		"repeats count once":             {value: "Secret/b,Secret/a,Secret/b", want: []object.Ref{secret("a"), secret("b")}},
		"another namespace is not meant": {value: "Secret/other/a", reason: `"Secret/other/a" is not`},
		"another kind is not known":      {value: "Secret/a,Pod/b", reason: `"Pod/b" is not`},
		"lower case is not a kind":       {value: "secret/a", reason: `"secret/a" is not`},
		"a name alone says no kind":      {value: "a", reason: `"a" is not`},
		"a kind alone says no name":      {value: "Secret/", reason: `"Secret/" is not`},
		"a comma at the end":             {value: "Secret/a,", reason: `"" is not`},
		"a name that cannot be":          {value: "Secret/A_b", reason: `"Secret/A_b" is not`},
		"nothing":                        {value: " ", reason: "empty"},
		"far too many":                   {value: manySecrets(MaxListed + 1), reason: "it lists 101 objects, more than 100"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseReloadOn("ns", test.value)
			require.Equal(t, test.want, got)
			if test.reason != "" {
				require.ErrorContains(t, err, test.reason)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func manySecrets(count int) string {
	names := make([]string, 0, count)
	for i := range count {
		names = append(names, fmt.Sprintf("Secret/s-%d", i))
	}
	return strings.Join(names, ",")
}

func TestReloadKeys(t *testing.T) {
	tests := map[string]struct {
		value  string
		want   []string
		reason string
	}{
		"one key":                {value: "tls.crt", want: []string{"tls.crt"}},
		"sorted, without repeat": {value: "b, a,b", want: []string{"a", "b"}},
		"what cannot be a key":   {value: "a,b c", reason: `"b c" is not a key`},
		"a comma too many":       {value: "a,,b", reason: `"" is not a key`},
		"nothing":                {value: "", reason: "empty"},
		"far too long":           {value: strings.Repeat("k", 9000), reason: "kkk\" is not a key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseReloadKeys(test.value)
			require.Equal(t, test.want, got)
			if test.reason != "" {
				require.ErrorContains(t, err, test.reason)
				require.Less(t, len(err.Error()), 100)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func FuzzReloadOn(f *testing.F) {
	f.Add("Secret/a, ConfigMap/b")
	f.Fuzz(func(t *testing.T, value string) {
		refs, err := ParseReloadOn("ns", value)
		require.Equal(t, err != nil, len(refs) == 0)
		for _, ref := range refs {
			require.Equal(t, "ns", ref.Namespace)
			parsed, err := object.ParseRef(ref.String())
			require.NoError(t, err)
			require.Equal(t, ref, parsed)
		}
	})
}
