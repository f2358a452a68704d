package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
)

func TestFaultyDeliveriesAreProblemsWithLineAndPath(t *testing.T) {
	delivery := func(text string) []byte { return oneRule("  sync:", "    delivery: {"+text+"}", "  reload: {}") }
	const at = "f.yaml:7: rules[0].sync.delivery"
	for sentence, test := range map[string]struct {
		raw  []byte
		want []string
	}{
		"percent out of range":              {delivery("stages: [{name: a, percent: 100}]"), []string{at + ".stages[0].percent: is too large; write at most 99"}},
		"a soak longer than a week":         {delivery("stages: [{name: a, percent: 5, soak: 200h}]"), []string{at + ".stages[0].soak: \"200h0m0s\" cannot be used: write 0s to 168h0m0s"}},
		"no evidence":                       {delivery("gate: {evidence: 0}"), []string{at + ".gate.evidence: is too small; write at least 1"}},
		"a stage of nothing":                {delivery("stages: [{name: a}]"), []string{at + ".stages[0]: say which namespaces the stage has: namespaces or percent"}},
		"two stages of one name":            {delivery("stages: [{name: rest, percent: 5}]"), []string{at + ".stages[0].name: \"rest\" cannot be used: is the name of another stage; the last stage, which has the rest, is named rest"}},
		"a gate without a reload section":   {oneRule("  sync: {delivery: {stages: [{name: a, percent: 5}], gate: {consumers: Healthy}}}"), []string{"f.yaml:6: rules[0].sync.delivery.gate.consumers: nobody looks at consumers without a reload section; add reload: {}, or write None"}},
		"a delivery that keeps no revision": {oneRule("  sync: {history: 0, delivery: {stages: [{name: a, percent: 5}]}}", "  reload: {}"), []string{"f.yaml:6: rules[0].sync.history: a delivery needs the revisions before it; remove the key, or write 2 to 50"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := config.Parse("f.yaml", test.raw)
			var problems config.Problems
			require.ErrorAs(t, err, &problems)
			var got []string
			for _, problem := range problems {
				got = append(got, problem.String())
			}
			require.Equal(t, test.want, got)
		})
	}
}
