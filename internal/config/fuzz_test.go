package config_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/headwater-k8s/headwater/configs"
	"github.com/headwater-k8s/headwater/internal/config"
)

// Whatever is accepted compiles, and means the same when it is written out and
// read again. Whatever is refused says where.
func FuzzParse(f *testing.F) {
	f.Add(configs.Sample())
	f.Add(oneRule("  sync: {target: {labels: {a.b/C: x}, keys: [{from: a, to: b}]}}", "  reload: {debounce: 5us}"))
	f.Add(oneRule("  sync: {namespaces: {selector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}}"))
	f.Add(oneRule("  sync: &a {namespaces: {exclude: []}}", "  protect: {<<: {message: no}, guardNamespace: false}"))
	f.Add(oneRule(`  protect: {message: "a\tb\u2028", allow: {serviceAccounts: [{namespace: a, name: b}]}}`))
	f.Add(file("reload: {maxConcurrentRollouts: 0x10}", "safety: {maxDeleteFraction: .5}", "notify: []"))
	f.Add(file("rules: [", "- *a", "\t"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		parsed, err := config.Parse("f.yaml", raw)
		if err != nil {
			var problems config.Problems
			require.ErrorAs(t, err, &problems)
			require.NotEmpty(t, problems)
			return
		}
		_, err = parsed.Compile("headwater")
		require.NoError(t, err)
		written, err := json.Marshal(parsed)
		require.NoError(t, err)
		again, err := config.Parse("f.json", written)
		require.NoError(t, err, "%s", written)
		again.Revision = parsed.Revision
		require.True(t, equality.Semantic.DeepEqual(parsed, again), "%s", written)
	})
}
