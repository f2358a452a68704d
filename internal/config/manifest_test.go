package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
)

const manifest = `apiVersion: v1
kind: Namespace
metadata: {name: own}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: headwater, namespace: own}
data:
  headwater.yaml: |
    apiVersion: headwater.dev/v1alpha1
    kind: Config
    rules:
    - name: a
      source: {kind: Secret, namespace: own, name: s}
      sync: {}
`

func TestCheckFileReadsWhatAGitRepositoryHolds(t *testing.T) {
	const rule = `
- name: a
  source: {kind: Secret, namespace: p, name: s}
  sync: {}
`
	for sentence, test := range map[string]struct {
		raw      string
		rules    int
		problems []string
		notes    []string
	}{
		"a configuration": {raw: string(oneRule("  sync: {}")), rules: 1},
		"a manifest of several documents, with the lines of the file": {
			raw: manifest, rules: 1,
			notes: []string{"f.yaml:14: rules[0].source.namespace: the rule clones nothing: this is Headwater's own namespace, whose keys and certificates must not leave it; move the source to another namespace"},
		},
		"a manifest with mistakes": {
			raw: manifest + "      protekt: {}\n    - name: a\n      source: {kind: Secret, namespace: p, name: s}\n      sync: {}\n",
			problems: []string{
				`f.yaml:16: rules[0].protekt: unknown key; did you mean "protect"?`,
				`f.yaml:17: rules[1].name: "a" is the name of the rule in line 13 already; choose another`,
			},
		},
		"a manifest whose text is not YAML": {
			raw:      manifest + "       wrong: {}\n",
			problems: []string{`f.yaml:12: is not YAML, here or just after: did not find expected key`},
		},
		"a manifest whose text is in quotes": {
			raw:      "kind: ConfigMap\ndata:\n  headwater.yaml: \"apiVersion: headwater.dev/v1alpha1\\nkind: Config\\nrulez: []\\n\"\n",
			problems: []string{`f.yaml:3: rulez: unknown key; did you mean "rules"?`},
		},
		"a ConfigMap of somebody else": {
			raw: "apiVersion: v1\nkind: ConfigMap\ndata: {other.yaml: x}\n",
			problems: []string{
				`f.yaml:1: apiVersion: must be headwater.dev/v1alpha1, not "v1"`,
				`f.yaml:2: kind: must be Config, not "ConfigMap"`,
				`f.yaml:3: data: unknown key; remove it, or use apiVersion, kind, notify, protect, reload, removedRules, rules or safety`,
			},
		},
		"values of the chart, which has a header of its own": {
			raw: "replicaCount: 2\nconfig:\n  rules:" + strings.ReplaceAll(rule, "\n", "\n  ") + "\nlogLevel: info\n", rules: 1,
		},
		"values of the chart with mistakes": {
			raw: "replicaCount: 2\nconfig:\n  kind: Conf\n  rules:" + strings.ReplaceAll(rule, "\n", "\n  ") + "  sinc: {}\n",
			problems: []string{
				`f.yaml:3: kind: must be Config, not "Conf"`,
				`f.yaml:8: rules[0].sinc: unknown key; did you mean "sync"?`,
			},
		},
		"values of a chart that depends on it": {
			raw:      "headwater:\n  config: {rulez: []}\n",
			problems: []string{`f.yaml:2: rulez: unknown key; did you mean "rules"?`},
		},
		"a configuration with a second document, which the service refuses": {
			raw:      string(oneRule("  sync: {}")) + "---\nkind: ConfigMap\ndata: {headwater.yaml: x}\n",
			problems: []string{`f.yaml:7: a second document starts here; put everything into one, without ---`},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			found, err := config.CheckFile("headwater-system", "f.yaml", []byte(test.raw))
			if test.problems != nil {
				var problems config.Problems
				require.ErrorAs(t, err, &problems)
				require.Equal(t, test.problems, strings.Split(problems.Error(), "\n"))
				return
			}
			require.NoError(t, err)
			rules, notes := 0, []string(nil)
			for _, one := range found {
				rules += len(one.Rules)
				for _, note := range one.Notes {
					notes = append(notes, note.String())
				}
			}
			require.Equal(t, test.rules, rules)
			require.Equal(t, test.notes, notes)
		})
	}
}
