package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
)

func TestAConfigurationThatRemovesTooMuchIsHeld(t *testing.T) {
	const (
		a        = "- {name: a, source: {kind: Secret, namespace: p, name: a}, sync: {}}\n"
		b        = "- {name: b, source: {kind: Secret, namespace: p, name: b}, sync: {}}\n"
		c        = "- {name: c, source: {kind: Secret, namespace: p, name: c}, sync: {}}\n"
		aGuarded = "- {name: a, source: {kind: Secret, namespace: p, name: a}, sync: {}, protect: {}}\n"
		aWarned  = "- {name: a, source: {kind: Secret, namespace: p, name: a}, sync: {}, protect: {mode: Warn}}\n"
		aAlone   = "- {name: a, source: {kind: Secret, namespace: p, name: a}, protect: {}}\n"
		aRenamed = "- {name: other, source: {kind: Secret, namespace: p, name: a}, sync: {}, protect: {}}\n"
		aSplit   = "- {name: x, source: {kind: Secret, namespace: p, name: a}, sync: {}}\n- {name: y, source: {kind: Secret, namespace: p, name: a}, protect: {}}\n"
		reloads  = "- {name: r, source: {kind: Secret, namespace: p, name: r}, reload: {}}\n"
		selected = "- {name: a, source: {kind: Secret, namespace: p, selector: {matchLabels: {x: z}}}, sync: {}, protect: {}}\n"
		other    = "- {name: a, source: {kind: Secret, namespace: p, selector: {matchLabels: {x: y}}}, sync: {}, protect: {}}\n"
		tenth    = "safety: {maxDeleteFraction: 0.9}\n"
	)
	for sentence, test := range map[string]struct{ before, after, removed, more, held string }{
		"the same file":            {before: a + b, after: a + b},
		"a rule more":              {before: a, after: a + b},
		"a first rule":             {after: a},
		"no rule before and after": {},
		"no rule is left":          {before: a, held: "has no rule"},
		"no rule is left of one that only reloads":       {before: reloads, held: "has no rule"},
		"no rule is left, and the file says so":          {before: a + b, removed: "[a, b, never]"},
		"no rule is left, and the file names one of two": {before: a + b, removed: "[a]", held: "has no rule"},
		"one of three":                                          {before: a + b + c, after: a + b},
		"two of three":                                          {before: a + b + c, after: a, held: "removes 2 of 3 sync sections"},
		"two of three, and the file says so":                    {before: a + b + c, after: a, removed: "[b, c]"},
		"two of three, one named":                               {before: a + b + c, after: a, removed: "[b]"},
		"two of three, and the old fraction allows it":          {before: a + b + c, after: a, more: tenth, held: ""},
		"a protected source is not cloned any more":             {before: aGuarded + b, after: aAlone + b, held: "sync of Secret/p/a"},
		"a source is not protected any more":                    {before: aGuarded + b, after: a + b, held: "protect of Secret/p/a"},
		"a source is only warned about before":                  {before: aWarned + b, after: a + b},
		"a protected source that is gone, and the file says so": {before: aGuarded + b, after: b, removed: "[a]"},
		"a renamed rule":                                        {before: aGuarded + b, after: aRenamed + b},
		"a rule in two parts":                                   {before: aGuarded + b, after: aSplit + b},
		"another selector":                                      {before: selected + b, after: other + b, held: "Secret/p/(x=z)"},
		"a weaker mode":                                         {before: aGuarded, after: aWarned},
	} {
		t.Run(sentence, func(t *testing.T) {
			rules := func(text string) string {
				if text == "" {
					return "rules: []\n"
				}
				return "rules:\n" + text
			}
			before := parse(t, file(rules(test.before)+test.more))
			after := rules(test.after)
			if test.removed != "" {
				after += "removedRules: " + test.removed + "\n"
			}
			next := parse(t, file(after))
			held := before.Held(next)
			if test.held == "" {
				require.Nil(t, held)
				return
			}
			require.NotNil(t, held)
			require.Contains(t, held.Error(), test.held)
			require.Contains(t, held.Error(), "approve --configuration "+next.Revision)
			require.LessOrEqual(t, len(held.Error()), 256, "a warning of the API server: %s", held)
		})
	}
}

func TestARuleOfTheFileIsNotRemoved(t *testing.T) {
	text := file("rules:", "- {name: a, source: {kind: Secret, namespace: p, name: a}, sync: {}}", "removedRules: [b, a]")
	_, err := config.Parse("headwater.yaml", text)
	require.ErrorContains(t, err, "removedRules[1]: is the name of a rule of this file")
}

func TestWhatProtectsLessIsSaid(t *testing.T) {
	const guarded = "- {name: a, source: {kind: ConfigMap, namespace: p, name: a}, protect: %}\n"
	of := func(section string) []byte { return file("rules:", strings.ReplaceAll(guarded, "%", section)) }
	const checked = "validate: [{key: k, is: YAML}]"
	before := parse(t, of("{allow: {users: [ann]}}, "+checked))
	for sentence, test := range map[string]struct{ after, says string }{
		"the same":              {"{allow: {users: [ann]}}, " + checked, ""},
		"fewer users":           {"{}, " + checked, ""},
		"a weaker mode":         {"{mode: Audit, allow: {users: [ann]}}, " + checked, "mode Audit in place of Enforce"},
		"another user":          {"{allow: {users: [ann, bob]}}, " + checked, "allow.users has bob"},
		"a group":               {"{allow: {groups: [all]}}, " + checked, "allow.groups has all"},
		"a ClusterRole":         {"{allow: {clusterRoles: [cluster-admin, edit]}}, " + checked, "allow.clusterRoles has edit"},
		"a service account":     {"{allow: {serviceAccounts: [{namespace: n, name: s}]}}, " + checked, "allow.serviceAccounts has"},
		"an operation less":     {"{operations: [Update, Delete]}, " + checked, "operations without Create"},
		"the namespace is open": {"{guardNamespace: false}, " + checked, "guardNamespace: false"},
		"a check is gone":       {"{}", "validate without a check of k"},
		"another check":         {"{}, validate: [{key: k, is: PEM}]", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			lines := before.Weakened(parse(t, of(test.after)))
			if test.says == "" {
				require.Empty(t, lines)
				return
			}
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], "ConfigMap/p/a: ")
			require.Contains(t, lines[0], test.says)
		})
	}
	require.Contains(t, before.Weakened(parse(t, file("rules: []")))[0], "no protect section any more")
	exempting := file("rules: []", "protect: {systemIdentities: [eve]}")
	require.Equal(t, []string{"every source: systemIdentities has eve"}, parse(t, file("rules: []")).Weakened(parse(t, exempting)))
}
