package annotations

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

func TestWhatGlobsHaveInCommon(t *testing.T) {
	for sentence, test := range map[string]struct {
		a, b, want []string
		told       bool
	}{
		"a name and a glob that matches it":  {a: []string{"team-a"}, b: []string{"team-*"}, want: []string{"team-a"}},
		"a name and a glob that does not":    {a: []string{"shop"}, b: []string{"team-*"}},
		"a glob and a wider one":             {a: []string{"team-*"}, b: []string{"team-x-*"}, want: []string{"team-x-*"}},
		"all and some":                       {a: []string{"*"}, b: []string{"a-?"}, want: []string{"a-?"}},
		"globs that begin differently":       {a: []string{"a-*"}, b: []string{"b-*"}},
		"globs of different lengths":         {a: []string{"a[0-9]"}, b: []string{"a[0-9][0-9]"}},
		"globs of which it is hard to say":   {a: []string{"*-prod"}, b: []string{"team-*"}, told: true},
		"the same, and another in each list": {a: []string{"a", "b"}, b: []string{"b", "c"}, want: []string{"b"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var f ir.Finding
			require.Equal(t, test.want, commonGlobs(&f, test.a, test.b))
			require.Equal(t, test.told, len(f.Notes) > 0)
		})
	}
}
