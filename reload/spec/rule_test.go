package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestAStageCanAskForRestarts(t *testing.T) {
	delivery := stages.Delivery{Stages: []stages.Stage{{Name: "canary", Restart: true, Namespaces: &stages.StageNamespaces{Include: []string{"a", "src"}}}}}
	staged, err := stages.Compile(delivery)
	require.NoError(t, err)
	for sentence, test := range map[string]struct {
		namespace string
		stages    *stages.Stages
		action    spec.Action
		want      spec.Action
	}{
		"in its namespaces":               {"a", staged, spec.Auto, spec.Restart},
		"also if the rule would refresh":  {"a", staged, spec.Refresh, spec.Restart},
		"not if the rule reloads nothing": {"a", staged, spec.None, spec.None},
		"not in a namespace of another":   {"z", staged, spec.Auto, spec.Auto},
		"not where the source is":         {"src", staged, spec.Auto, spec.Auto},
		"not without stages":              {"a", nil, spec.Auto, spec.Auto},
	} {
		t.Run(sentence, func(t *testing.T) {
			rule := spec.Rule{Base: rules.Base{Source: rules.Source{Namespace: "src"}}, Config: spec.Config{Action: test.action}, Stages: test.stages}
			require.Equal(t, test.want, rule.ActionIn(test.namespace, nil))
		})
	}
}

func TestACloneHasTheKeysThatTheRuleNames(t *testing.T) {
	source := object.Digests{{Key: "a", Sum: digest.Sum{1}}, {Key: "b", Sum: digest.Sum{2}}, {Key: "c", Sum: digest.Sum{3}}}
	require.Equal(t, source, spec.Rule{}.AsCloned(source))
	rule := spec.Rule{CloneKeys: []spec.CloneKey{{From: "a", To: "z"}, {From: "b", To: "b"}, {From: "gone", To: "x"}}}
	require.Equal(t, object.Digests{{Key: "b", Sum: digest.Sum{2}}, {Key: "z", Sum: digest.Sum{1}}}, rule.AsCloned(source))
}
