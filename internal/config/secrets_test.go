package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
)

func TestWhatNeedsSecretsIsAnErrorWithoutThem(t *testing.T) {
	const head = "apiVersion: headwater.dev/v1alpha1\nkind: Config\n"
	for sentence, test := range map[string]struct {
		text  string
		wrong []string
	}{
		"ConfigMaps alone": {"rules:\n- {name: a, source: {kind: ConfigMap, namespace: p, name: s}, sync: {}, protect: {}, reload: {}}\nreload: {optIn: false}\n", nil},
		"a Secret is a source": {
			"rules:\n- name: a\n  source: {kind: Secret, namespace: p, name: s}\n  sync: {}\nreload: {optIn: false}\n", []string{"5 rules[0].source.kind"},
		},
		"owners may opt in, by default": {"rules: []\n", []string{"1 reload.optIn"}},
		"sections of namespaces":        {"rules: []\nreload:\n  optIn: false\n  namespaces: [{include: [a]}]\n", []string{"6 reload.namespaces"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			parsed, err := config.Parse("f.yaml", []byte(head+test.text))
			require.NoError(t, err)
			var problems config.Problems
			if test.wrong == nil {
				require.NoError(t, parsed.WithoutSecrets())
				return
			}
			require.ErrorAs(t, parsed.WithoutSecrets(), &problems)
			require.Len(t, problems, len(test.wrong))
			for i, wrong := range test.wrong {
				require.Contains(t, wrong, problems[i].Path)
				require.Contains(t, problems[i].Message, "rbac.secrets: false")
			}
		})
	}
}

func TestValuesOfAChartWithoutSecretsAreCheckedAsSuch(t *testing.T) {
	const values = "config:\n  rules:\n  - {name: a, source: {kind: Secret, namespace: p, name: s}, sync: {}}\n  reload: {optIn: false}\n"
	_, err := config.CheckFile("headwater-system", "values.yaml", []byte("rbac: {secrets: true}\n"+values))
	require.NoError(t, err)
	_, err = config.CheckFile("headwater-system", "values.yaml", []byte("rbac: {secrets: false}\n"+values))
	require.ErrorContains(t, err, "values.yaml:4: rules[0].source.kind: Headwater runs without permissions on Secrets")
}
