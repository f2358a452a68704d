package config_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/configs"
	"github.com/headwater-k8s/headwater/internal/config"
)

// lineBreaks are those of YAML 1.1.
var lineBreaks = regexp.MustCompile("\r\n?|[\n\u0085\u2028\u2029]")

// Whatever is accepted compiles, holds its defaults, and means the same when it
// is written out, as JSON or YAML, and read again: so the schema takes all that
// the Go types can hold. Whatever is refused says where, and what.
func FuzzParse(f *testing.F) {
	f.Add(configs.Sample())
	f.Add(oneRule("  sync: {target: {labels: {a.b/C: x}, keys: [{from: a, to: b}]}}", "  reload: {debounce: 5us}"))
	f.Add(oneRule("  sync: {namespaces: {selector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}}"))
	f.Add(oneRule("  sync: &a {namespaces: {exclude: []}}", "  protect: {<<: {message: no}, guardNamespace: false}"))
	f.Add(oneRule(`  protect: {message: "a\tb\u2028", allow: {serviceAccounts: [{namespace: a, name: b}]}}`))
	f.Add(file("reload: {maxConcurrentRollouts: 0x10}", "safety: {maxDeleteFraction: .5}", "notify: []"))
	f.Add(file("rules: [", "- *a", "\t"))
	f.Add([]byte("\r0"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		parsed, err := config.Parse("f.yaml", raw)
		if err != nil {
			var problems config.Problems
			require.ErrorAs(t, err, &problems)
			require.NotEmpty(t, problems)
			for _, problem := range problems {
				require.Equal(t, "f.yaml", problem.File)
				require.Positive(t, problem.Line)
				require.LessOrEqual(t, problem.Line, len(lineBreaks.FindAll(raw, -1))+1, problem)
				require.NotEmpty(t, problem.Message)
				require.NotContains(t, problem.Message, "\n", "one problem is one line")
			}
			return
		}
		_, err = parsed.Compile("headwater")
		require.NoError(t, err)
		written, err := json.Marshal(parsed)
		require.NoError(t, err)
		asYAML, err := yaml.JSONToYAML(written)
		require.NoError(t, err)
		for name, form := range map[string][]byte{"f.json": written, "f.yaml": asYAML} {
			again, err := config.Parse(name, form)
			require.NoError(t, err, "%s", form)
			again.Revision, again.Text, again.Notes, again.SecretUses = parsed.Revision, parsed.Text, parsed.Notes, parsed.SecretUses // with lines
			require.True(t, equality.Semantic.DeepEqual(parsed, again), "%s", form)
		}
		before := written
		parsed.Default()
		written, err = json.Marshal(parsed)
		require.NoError(t, err)
		require.JSONEq(t, string(before), string(written), "defaults are filled in once")
	})
}
