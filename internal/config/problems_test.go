package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
)

// badFile is a file that must be refused and the exact report about it.
type badFile struct {
	raw  []byte
	want []string
}

func requireReports(t *testing.T, tests map[string]badFile) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parsed, err := config.Parse("f.yaml", test.raw)
			require.Nil(t, parsed)
			var problems config.Problems
			require.ErrorAs(t, err, &problems)
			require.Equal(t, test.want, strings.Split(problems.Error(), "\n"))
		})
	}
}

func TestParseReportsEveryProblemAtOnce(t *testing.T) {
	requireReports(t, map[string]badFile{
		"the shape of one rule and the meaning of another": {
			raw: file(
				"rulez: []",
				"rules:",
				"- name: Foo_",
				"  source: {kind: secret, namespace: 12}",
				"  sinc: {}",
				"- name: b",
				"  source: {kind: Secret, namespace: Bad_, name: x}",
				"  sync:",
				"  protect: true",
				"- name: b",
				"  source: {kind: Secret, namespace: p, name: x}",
				"  sync: {onRuleRemoved: Delete, target: {keys: [a]}}",
				"  protect: {operations: [update]}",
				"notify: [{url: 'slack://top-secret@nowhere', on: [failed]}, 'https://example.com/top-secret']",
			),
			want: []string{
				`f.yaml:3: rulez: unknown key; did you mean "rules"?`,
				`f.yaml:5: rules[0].name: "Foo_" cannot be used; write a DNS label: lower-case letters, digits and dashes inside`,
				`f.yaml:6: rules[0].source.kind: must be Secret or ConfigMap, not "secret"`,
				`f.yaml:6: rules[0].source.name: name the source object, or select several by label with selector`,
				`f.yaml:6: rules[0].source.namespace: must be text; put it in quotes: "12"`,
				`f.yaml:7: rules[0].sinc: unknown key; did you mean "sync"?`,
				`f.yaml:9: rules[1].source.namespace: "Bad_" cannot be used: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character`,
				`f.yaml:10: rules[1].sync: has no value; write {} for all defaults, or remove it`,
				`f.yaml:11: rules[1].protect: must be a mapping, not true; write {} for all defaults`,
				`f.yaml:12: rules[2].name: "b" is the name of the rule in line 8 already; choose another`,
				`f.yaml:14: rules[2].sync.target.keys[0]: must be a mapping, not "a"; write {from: "a"}`,
				`f.yaml:15: rules[2].protect.operations[0]: must be Create, Update or Delete, not "update"`,
				`f.yaml:16: notify[0].on[0]: must be Missing, Failed, Held, Conflict, Refused, Denied, Tampered, Unproven, Invalid, Propagated or Reloaded, not "failed"`,
				`f.yaml:16: notify[0].url: is no URL of slack; write https://hooks.slack.com/services/…, as Slack gives it, or slack://xoxb:TOKEN@CHANNEL`,
				`f.yaml:16: notify[1]: must be a mapping, not "https://…"`,
			},
		},
		"a file that is something else": {
			raw: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"),
			want: []string{
				`f.yaml:1: apiVersion: must be headwater.dev/v1alpha1, not "v1"`,
				`f.yaml:2: kind: must be Config, not "Secret"`,
				`f.yaml:3: metadata: unknown key; remove it, or use apiVersion, kind, notify, protect, reload, rules or safety`,
			},
		},
		"a file without its header": {
			raw: []byte("rules: []\n"),
			want: []string{
				`f.yaml:1: apiVersion: is missing; write apiVersion: headwater.dev/v1alpha1`,
				`f.yaml:1: kind: is missing; write kind: Config`,
			},
		},
	})
}

func TestParseReportsWrongShapes(t *testing.T) {
	requireReports(t, map[string]badFile{
		"a key that is nearly right": {
			raw:  oneRule("  sync:", "    namespaces:", "      exclud: [a]"),
			want: []string{`f.yaml:8: rules[0].sync.namespaces.exclud: unknown key; did you mean "exclude"?`},
		},
		"a key in the wrong case": {
			raw:  oneRule("  sync: {onconflict: Skip}"),
			want: []string{`f.yaml:6: rules[0].sync.onconflict: unknown key; did you mean "onConflict"?`},
		},
		"a key that is like no other": {
			raw:  oneRule("  reload: {speed: 3}"),
			want: []string{`f.yaml:6: rules[0].reload.speed: unknown key; remove it, or use action, debounce, maxRestartsPerHour, minInterval, targets, then or workloads`},
		},
		"a duration without a unit": {
			raw:  oneRule("  reload:", "    debounce: 1"),
			want: []string{`f.yaml:7: rules[0].reload.debounce: a duration needs a unit; write 1s`},
		},
		"a duration in quotes without a unit": {
			raw:  oneRule("  reload:", `    debounce: "1"`),
			want: []string{`f.yaml:7: rules[0].reload.debounce: "1" cannot be used; write a number with a unit, such as 500ms, 1s or 2m`},
		},
		"a duration longer than time": {
			raw:  oneRule("  reload:", "    debounce: 99999999999h"),
			want: []string{`f.yaml:7: rules[0].reload.debounce: "99999999999h" cannot be used; write a number with a unit, such as 500ms, 1s or 2m`},
		},
		"booleans in quotes or in the old spelling": {
			raw: file("rules:",
				`- {name: a, source: {kind: Secret, namespace: p, name: x}, protect: {guardNamespace: "true"}}`,
				`- {name: b, source: {kind: Secret, namespace: p, name: y}, protect: {guardNamespace: yes}}`),
			want: []string{
				`f.yaml:4: rules[0].protect.guardNamespace: must be true or false without quotes, not "true"`,
				`f.yaml:5: rules[1].protect.guardNamespace: must be true or false without quotes, not "yes"`,
			},
		},
		"keys without values, whose lists were all commented out": {
			raw: oneRule("  sync:", "    namespaces:", "      include:", "      # - blog"),
			want: []string{
				`f.yaml:8: rules[0].sync.namespaces.include: has no value; write one, or remove it`,
			},
		},
		"an enumeration without a value": {
			raw:  oneRule("  reload:", "    action:"),
			want: []string{`f.yaml:7: rules[0].reload.action: has no value; write Auto, Restart, Refresh or None`},
		},
		"one text in place of a list": {
			raw:  oneRule("  sync: {namespaces: {include: blog}}"),
			want: []string{`f.yaml:6: rules[0].sync.namespaces.include: must be a list, not "blog"; write ["blog"]`},
		},
		"a list in place of labels": {
			raw:  oneRule("  sync: {target: {labels: [a]}}"),
			want: []string{`f.yaml:6: rules[0].sync.target.labels: must be a mapping, not a list`},
		},
		"a mapping in place of rules": {
			raw:  file("rules: {name: a}"),
			want: []string{`f.yaml:3: rules: must be a list, not a mapping; write [{…}]`},
		},
		"a number in place of a label's value": {
			raw:  oneRule("  sync:", "    target:", "      labels:", "        a.example/Tier: 1"),
			want: []string{`f.yaml:9: rules[0].sync.target.labels[a.example/Tier]: must be text; put it in quotes: "1"`},
		},
		"a mapping in place of text": {
			raw:  oneRule("  protect: {message: {text: no}}"),
			want: []string{`f.yaml:6: rules[0].protect.message: must be text, not a mapping`},
		},
		"a fraction and a negative number": {
			raw: file("reload: {maxConcurrentRollouts: 1.5}", "safety: {maxDeleteFraction: -1}"),
			want: []string{
				`f.yaml:3: reload.maxConcurrentRollouts: must be a whole number without quotes, not 1.5`,
				`f.yaml:4: safety.maxDeleteFraction: is too small; write at least 0`,
			},
		},
		"an enormous number": {
			raw:  file("reload: {maxConcurrentRollouts: 99999999999999999999}"),
			want: []string{`f.yaml:3: reload.maxConcurrentRollouts: is too large; write at most 1000000`},
		},
		"a name that is too long": {
			raw:  file("rules:", "- name: "+strings.Repeat("a", 64), "  source: {kind: Secret, namespace: p, name: x}", "  sync: {}"),
			want: []string{`f.yaml:4: rules[0].name: is 64 characters long; 63 are allowed`},
		},
		"an empty list item and a rule without anything": {
			raw: file("rules:", "-", "- {}"),
			want: []string{
				`f.yaml:4: rules[0]: has no value; write one, or remove it`,
				`f.yaml:5: rules[1].name: is missing; add it`,
				`f.yaml:5: rules[1].source: is missing; add it`,
			},
		},
	})
}

func TestParseReportsWrongMeanings(t *testing.T) {
	var manyValues []string
	for i := range 800 {
		manyValues = append(manyValues, fmt.Sprintf("%s%d", strings.Repeat("v", 59), i))
	}
	requireReports(t, map[string]badFile{
		"what the API server cannot evaluate": {
			raw: file("protect: {systemIdentities: ["+strings.Repeat("a", 9000)+"]}", "rules:", "- name: a",
				"  source: {kind: Secret, namespace: p, selector: {matchExpressions: [{key: a, operator: In, values: ["+strings.Join(manyValues, ", ")+"]}]}}",
				"  protect: {allow: {users: ["+strings.Repeat("a", 9000)+"]}}"),
			want: []string{
				`f.yaml:3: protect.systemIdentities[0]: is too long to be anybody's name; remove it`,
				`f.yaml:6: rules[0].source.selector: is too long for the API server to evaluate; select by fewer values`,
				`f.yaml:7: rules[0].protect.allow.users[0]: is too long to be anybody's name; remove it`,
			},
		},
		"a rule that does nothing": {
			raw:  oneRule(),
			want: []string{`f.yaml:4: rules[0]: does nothing; add sync: {}, protect: {} or reload: {}`},
		},
		"a name for the third time": {
			raw: file("rules:",
				"- {name: a, source: {kind: Secret, namespace: p, name: x}, sync: {}}",
				"- {name: a, source: {kind: Secret, namespace: p, name: y}, sync: {}}",
				"- {name: a, source: {kind: Secret, namespace: p, name: z}, sync: {}}"),
			want: []string{
				`f.yaml:5: rules[1].name: "a" is the name of the rule in line 4 already; choose another`,
				`f.yaml:6: rules[2].name: "a" is the name of the rule in line 4 already; choose another`,
			},
		},
		"an object that two rules protect": {
			raw: file("rules:",
				"- {name: a, source: {kind: Secret, namespace: p, name: x}, sync: {}}",
				"- name: b",
				"  source: &x {kind: Secret, namespace: p, name: x}",
				"  protect: {}",
				"- {name: c, source: {kind: ConfigMap, namespace: p, name: x}, protect: {}}",
				"- name: d",
				"  source: *x",
				"  protect: {}"),
			want: []string{`f.yaml:11: rules[3].protect: Secret/p/x is protected by rule b already, in line 7; remove one of them`},
		},
		"globs, labels and durations out of bounds": {
			raw: oneRule(
				"  sync:",
				"    namespaces:",
				"      include:",
				"      - blog",
				`      - "[a"`,
				"    target:",
				"      name: Blog",
				"      labels:",
				"        app.kubernetes.io/managed-by: us",
				"  reload: {debounce: 99s}"),
			want: []string{
				`f.yaml:10: rules[0].sync.namespaces.include[1]: "[a" cannot be used: not a glob: check its brackets and backslashes`,
				`f.yaml:12: rules[0].sync.target.name: "Blog" cannot be used: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character`,
				`f.yaml:14: rules[0].sync.target.labels[app.kubernetes.io/managed-by]: this key would hand the clone over to another tool`,
				`f.yaml:15: rules[0].reload.debounce: "1m39s" cannot be used: must be between 0s and 10s`,
			},
		},
		"sources by selector": {
			raw: file("rules:",
				"- name: a",
				"  source: {kind: Secret, namespace: p, name: x, selector: {matchLabels: {a: b}}}",
				"  sync: {}",
				"- name: b",
				"  source: {kind: Secret, namespace: p, selector: {}}",
				"  sync: {}",
				"- name: c",
				"  source: {kind: Secret, namespace: p, selector: {matchLabels: {a: b}}}",
				"  sync: {target: {name: one}}",
				"  protect: {}"),
			want: []string{
				`f.yaml:5: rules[0].source.selector: a source has a name or a selector, not both; remove one`,
				`f.yaml:8: rules[1].source.selector: would select every object of the namespace; give it a label to match`,
				`f.yaml:12: rules[2].sync.target.name: would give the clones of all selected sources one name; remove it`,
			},
		},
		"clones denied by a rule that makes none": {
			raw:  oneRule("  protect:", "    clones: Deny"),
			want: []string{`f.yaml:7: rules[0].protect.clones: the rule makes no clones; add sync: {}, or remove it`},
		},
		"other tools' opt-in where there is none": {
			raw:  file("reload: {optIn: false, compatibility: [Wave]}"),
			want: []string{`f.yaml:3: reload.compatibility: would have workloads opt in by the annotations of other tools, which optIn: false rules out; remove one of them`},
		},
		"a certificate of Headwater's own making": {
			raw:  file("protect: {certificates: {secretName: headwater-webhook-tls}}"),
			want: []string{`f.yaml:3: protect.certificates.secretName: is the Secret that Headwater makes itself; choose another name, or leave it out`},
		},
		"a certificate that no Secret can hold": {
			raw:  file("protect: {certificates: {secretName: Mine}}"),
			want: []string{`f.yaml:3: protect.certificates.secretName: "Mine" cannot be used: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character`},
		},
		"a pace that cannot be kept": {
			raw: file("rules:",
				"- name: a",
				"  source: {kind: Secret, namespace: p, name: x}",
				"  reload:",
				"    minInterval: 2h",
				"    then: {httpPost: {port: 80, path: reload}}",
				"reload:",
				"  confirmRefreshAfter: 1m",
				"  windows:",
				"  - {schedule: weekly, duration: 1h}",
				"  - {schedule: 0 2 * * *, duration: 5s, timeZone: Mars}"),
			want: []string{
				`f.yaml:7: rules[0].reload.minInterval: "2h0m0s" cannot be used: must be between 0s and 1h0m0s`,
				`f.yaml:8: rules[0].reload.then.httpPost.path: "reload" cannot be used: write a path, such as /-/reload`,
				`f.yaml:10: reload.confirmRefreshAfter: "1m0s" cannot be used: must be between 0s and 30s`,
				`f.yaml:12: reload.windows[0].schedule: "weekly" cannot be used: write a cron expression of five fields, such as "0 2 * * 6": minute, hour, day of the month, month, day of the week`,
				`f.yaml:13: reload.windows[1].duration: "5s" cannot be used: must be between 1m0s and 168h0m0s`,
				`f.yaml:13: reload.windows[1].timeZone: "Mars" cannot be used: write a name of the IANA database, such as Europe/Berlin`,
			},
		},
	})
}
