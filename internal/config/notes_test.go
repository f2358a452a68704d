package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/configs"
	"github.com/headwater-k8s/headwater/internal/config"
)

func TestWhatIsHardlyMeantIsNoted(t *testing.T) {
	const shared = "rules[1].sync: rule a in line 4 comes first where both clone a Secret named s into one namespace; " +
		"keep their namespaces apart, or give one another target.name"
	const system = "f.yaml:6: rules[0].sync.namespaces.exclude: takes the place of its default, kube-*: the rule clones into "
	const add = "; add kube-*, or name them in include if that is meant"
	const nowhere = "f.yaml:6: rules[0].sync.namespaces.include: the rule clones nowhere: exclude ("
	const nothing = ") and the source's own namespace leave nothing of it"
	two := func(a, b string) []byte {
		return file("rules:", "- name: a", "  source: {kind: Secret, namespace: p, name: s}", "  sync: {"+a+"}",
			"- name: b", "  source: {kind: Secret, namespace: q, name: s}", "  sync: {"+b+"}")
	}
	soak := func(text string) []byte {
		return oneRule("  sync: {delivery: {stages: [{name: a, percent: 5, restart: true"+text+"}]}}", "  reload: {}")
	}
	for sentence, test := range map[string]struct {
		raw  []byte
		want []string
	}{
		"an exclude without kube-*":            {namespaces("exclude: [team-x]"), []string{system + "kube-system, kube-public, kube-node-lease" + add}},
		"an exclude of some of them":           {namespaces("exclude: [kube-system, kube-p*]"), []string{system + "kube-node-lease" + add}},
		"an exclude that covers kube-*":        {namespaces("exclude: ['k*']"), nil},
		"an empty exclude":                     {namespaces("exclude: []"), nil},
		"an exclude from what lacks them":      {namespaces("include: [team-*], exclude: [team-x]"), nil},
		"an include that names one":            {namespaces("include: ['*', kube-public], exclude: [team-x]"), nil},
		"a selector that may leave them out":   {namespaces("exclude: [team-x], selector: {matchLabels: {a: b}}"), nil},
		"an include that the default excludes": {namespaces("include: [kube-system]"), []string{nowhere + "kube-*" + nothing}},
		"an include excluded by wider globs":   {namespaces("include: [a-b-*, '*-ci'], exclude: ['a-*', '*-ci', 'kube-*']"), []string{nowhere + "a-*, *-ci, kube-*" + nothing}},
		"an include of the source's namespace": {namespaces("include: [platform]"), []string{nowhere + "kube-*" + nothing}},
		"an include of nothing":                {namespaces("include: []"), []string{nowhere + "kube-*" + nothing}},
		"an include of which something stays":  {namespaces("include: ['*-ci'], exclude: ['a-*', 'kube-*']"), nil},

		"stages apart": {stages("include: [team-*]", "{include: [team-1]}", "{include: [team-2]}"), nil},
		"a stage outside of the rule": {stages("include: [team-*]", "{include: [ops-*]}"), []string{
			"f.yaml:6: rules[0].sync.delivery.stages[0].namespaces: the stage selects nothing: the rule clones to none of these namespaces",
		}},
		"a stage that an earlier one covers": {stages("include: [team-*]", "{include: [team-*]}", "{include: [team-1], selector: {matchLabels: {a: b}}}"), []string{
			"f.yaml:6: rules[0].sync.delivery.stages[1].namespaces: the stage selects nothing: stage s0, which comes first, has all of these namespaces",
		}},
		"a stage that overlaps with an earlier one": {stages("include: [team-*]", "{include: [team-1]}", "{include: [team-*]}"), []string{
			"f.yaml:6: rules[0].sync.delivery.stages[1].namespaces: a namespace that stage s0 matches as well belongs to that stage, which comes first",
		}},
		"stages by different labels": {stages("", "{selector: {matchLabels: {a: b}}}", "{selector: {matchLabels: {a: c}}}"), nil},
		"stages by the same labels": {stages("", "{selector: {matchLabels: {a: b}}}", "{selector: {matchLabels: {a: b}}}"), []string{
			"f.yaml:6: rules[0].sync.delivery.stages[1].namespaces: the stage selects nothing: stage s0, which comes first, has all of these namespaces",
		}},

		"a stage whose soak is the default": {soak(""), nil},
		"a first stage without restart": {oneRule("  sync: {delivery: {stages: [{name: a, percent: 5}]}}", "  reload: {}"), []string{
			"f.yaml:6: rules[0].sync.delivery.stages[0].restart: a consumer that only mounts the object is not restarted, so this stage does not show whether it starts with a new value; write restart: true, or false if that is enough",
		}},
		"a first stage that is not to restart": {oneRule("  sync: {delivery: {stages: [{name: a, percent: 5, restart: false}]}}", "  reload: {}"), nil},
		"a delivery without a reload section": {oneRule("  sync: {delivery: {stages: [{name: a, percent: 5}]}}"), []string{
			"f.yaml:6: rules[0].sync.delivery.gate.consumers: without a reload section nobody looks at consumers, so the gate is None: only time passes between the stages; add reload: {}, or write None",
		}},
		"a delivery that asks for nothing": {oneRule("  sync: {delivery: {gate: {consumers: None}}}"), nil},
		"a stage without a soak": {soak(", soak: 0s"), []string{
			"f.yaml:6: rules[0].sync.delivery.stages[0].soak: the next stage starts as soon as the new pods are ready, which is before a crash loop shows; write a soak, for example 5m",
		}},
		"a stage with a soak":                       {soak(", soak: 5m"), nil},
		"a stage without a soak, with an approval":  {soak(", soak: 0s, approval: true"), nil},
		"a stage without a soak, of a lenient gate": {oneRule("  sync: {delivery: {stages: [{name: a, percent: 5}], gate: {consumers: Restarted}}}", "  reload: {}"), nil},

		"two rules for all namespaces":           {two("", ""), []string{"f.yaml:9: " + shared}},
		"a rule for some of another's":           {two("namespaces: {include: [team-*]}", "namespaces: {include: [x, team-a]}"), []string{"f.yaml:9: " + shared}},
		"a rule for what another selects":        {two("namespaces: {selector: {matchLabels: {a: b}}}", ""), []string{"f.yaml:9: " + shared}},
		"two rules for the same labels":          {two("namespaces: {selector: {matchLabels: {a: b}}}", "namespaces: {selector: {matchLabels: {a: b}}}"), []string{"f.yaml:9: " + shared}},
		"two rules for different labels":         {two("namespaces: {selector: {matchLabels: {a: b}}}", "namespaces: {selector: {matchLabels: {a: c}}}"), nil},
		"two rules for different names":          {two("namespaces: {include: [team-*]}", "namespaces: {include: [ops-*]}"), nil},
		"a rule for what another excludes":       {two("namespaces: {exclude: [team-*, 'kube-*']}", "namespaces: {include: [team-a, team-b-*]}"), nil},
		"a rule for another's source alone":      {two("", "namespaces: {include: [p]}"), nil},
		"two rules that name clones differently": {two("", "target: {name: other}"), nil},
		"two rules that name clones alike":       {two("target: {name: t}", "target: {name: t}"), []string{"f.yaml:9: rules[1].sync: rule a in line 4 comes first where both clone a Secret named t into one namespace; keep their namespaces apart, or give one another target.name"}},
		"two rules of which one guards alone":    {file("rules:", "- name: a", "  source: {kind: Secret, namespace: p, name: s}", "  sync: {}", "- name: b", "  source: {kind: Secret, namespace: q, name: s}", "  protect: {}"), nil},
		"a section with an exclude without kube-*": {file("reload: {namespaces: [{exclude: [team-x]}]}"), []string{
			"f.yaml:3: reload.namespaces[0].exclude: takes the place of its default, kube-*: the section reaches into kube-system, kube-public, kube-node-lease" + add,
		}},
		"a section that the default excludes": {file("reload: {namespaces: [{}, {include: [kube-system]}]}"), []string{
			"f.yaml:3: reload.namespaces[1].include: the section reaches nowhere: exclude (kube-*) leaves nothing of it",
		}},
		"a section about no object": {file("reload: {namespaces: [{objects: {include: [a-b], exclude: [a-*]}}]}"), []string{
			"f.yaml:3: reload.namespaces[0].objects.include: the section is about no object: exclude (a-*) leaves nothing of it",
		}},
		"a section for some of all": {file("reload: {namespaces: [{include: [team-*], objects: {kinds: [Secret], exclude: [a-*]}}]}"), nil},

		"protection from all but override":        {oneRule("  protect: {allow: {clusterRoles: []}}"), []string{"f.yaml:6: rules[0].protect.allow: allows nobody: only Headwater and holders of the verb override may change the source"}},
		"protection from all but a user":          {oneRule("  protect: {allow: {clusterRoles: [], users: [u]}}"), nil},
		"a source in kube-system":                 {fromKubeSystem(""), []string{"f.yaml:5: rules[0].source.namespace: the rule clones nothing: a source in kube-system is cloned only with allowSystemNamespace: true beside it"}},
		"a source in kube-system, on purpose":     {fromKubeSystem(", allowSystemNamespace: true"), nil},
		"a source in Headwater's own namespace":   {file("rules:", "- name: a", "  source: {kind: Secret, namespace: own, name: s}", "  sync: {}"), []string{"f.yaml:5: rules[0].source.namespace: the rule clones nothing: this is Headwater's own namespace, whose keys and certificates must not leave it; move the source to another namespace"}},
		"a source there that is only protected":   {file("rules:", "- name: a", "  source: {kind: Secret, namespace: own, name: s}", "  protect: {}"), nil},
		"a password in clear text":                {file("notify:", "- url: http://user:topsecret@10.0.0.1/x"), []string{"f.yaml:4: notify[0].url: sends the password of the URL without encryption; write https://"}},
		"a password over TLS":                     {file("notify:", "- url: https://user:topsecret@10.0.0.1/x"), nil},
		"a fraction that holds everything":        {file("safety: {maxDeleteFraction: 0}"), []string{"f.yaml:3: safety.maxDeleteFraction: holds every removal of a clone until it is approved, that of a single one, too"}},
		"a fraction that holds nothing":           {file("safety: {maxDeleteFraction: 1.0}"), []string{"f.yaml:3: safety.maxDeleteFraction: never holds the removal of clones, however many go at once"}},
		"a fraction that holds more than a tenth": {file("safety: {maxDeleteFraction: 0.1}"), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			parsed, err := config.ParseIn("own", "f.yaml", test.raw)
			require.NoError(t, err)
			var told []string
			for _, note := range parsed.Notes {
				told = append(told, note.String())
			}
			require.Equal(t, test.want, told)
		})
	}
}

func fromKubeSystem(more string) []byte {
	return file("rules:", "- name: a", "  source: {kind: Secret, namespace: kube-system, name: s"+more+"}", "  sync: {}")
}

// stages is a rule whose stages have these namespaces, named s0 and so on.
func stages(of string, all ...string) []byte {
	var list []string
	for i, one := range all {
		list = append(list, fmt.Sprintf("{name: s%d, namespaces: %s}", i, one))
	}
	return oneRule("  sync: {namespaces: {" + of + "}, delivery: {gate: {consumers: None}, stages: [" + strings.Join(list, ", ") + "]}}")
}

func namespaces(chosen string) []byte { return oneRule("  sync: {namespaces: {" + chosen + "}}") }

func TestWhatHeadwaterOffersToCopyNeedsNoNotes(t *testing.T) {
	require.Empty(t, parse(t, configs.Sample()).Notes)
	raw, err := os.ReadFile("../../configs/reference.yaml")
	require.NoError(t, err)
	require.Empty(t, parse(t, raw).Notes)
}
