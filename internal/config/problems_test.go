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

func reports(raw []byte, want ...string) badFile { return badFile{raw, want} }

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
		"the shape of one rule and the meaning of another": reports(file(
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
			`f.yaml:16: notify[0].on[0]: must be Missing, Failed, Held, Conflict, Refused, Denied, Tampered, Unproven, Invalid, RulesHeld, Propagated, Reloaded, RolloutStuck, LeaderFlapping, DeliveryStarted, StagePassed, Delivered, Rejected, DeliveryRolledBack, NoEvidence or AwaitingApproval, not "failed"; did you mean "Failed"?`,
			`f.yaml:16: notify[0].url: is no URL of slack; write https://hooks.slack.com/services/…, as Slack gives it, or slack://xoxb:TOKEN@CHANNEL`,
			`f.yaml:16: notify[1]: must be a mapping, not "https://…"`),
		"gates that tolerate no number of namespaces": reports([]byte(`apiVersion: headwater.dev/v1alpha1
kind: Config
rules:
- name: a
  source: {kind: Secret, namespace: x, name: a}
  sync: {delivery: {stages: [{name: canary, percent: 5}], gate: {consumers: None, maxUnhealthy: 200%}}}
- name: b
  source: {kind: Secret, namespace: x, name: b}
  sync: {delivery: {stages: [{name: canary, percent: 5}], gate: {consumers: None, maxUnhealthy: true}}}
`),
			`f.yaml:6: rules[0].sync.delivery.gate.maxUnhealthy: "200%" cannot be used; write a number of namespaces, or a percentage from 0% to 100%`,
			`f.yaml:9: rules[1].sync.delivery.gate.maxUnhealthy: true cannot be used; write a number of namespaces, or a percentage from 0% to 100%`),
		"a file that is something else": reports([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"),
			`f.yaml:1: apiVersion: must be headwater.dev/v1alpha1, not "v1"`,
			`f.yaml:2: kind: must be Config, not "Secret"`,
			`f.yaml:3: metadata: unknown key; remove it, or use apiVersion, kind, notify, protect, reload, removedRules, rules or safety`),
		"a file without its header": reports([]byte("rules: []\n"),
			`f.yaml:1: apiVersion: is missing; write apiVersion: headwater.dev/v1alpha1`,
			`f.yaml:1: kind: is missing; write kind: Config`),
	})
}

func TestParseReportsWrongShapes(t *testing.T) {
	requireReports(t, map[string]badFile{
		"a key that is nearly right": reports(oneRule("  sync:", "    namespaces:", "      exclud: [a]"),
			`f.yaml:8: rules[0].sync.namespaces.exclud: unknown key; did you mean "exclude"?`),
		"a key in the wrong case": reports(oneRule("  sync: {onconflict: Skip}"),
			`f.yaml:6: rules[0].sync.onconflict: unknown key; did you mean "onConflict"?`),
		"a key that is like no other": reports(oneRule("  reload: {speed: 3}"),
			`f.yaml:6: rules[0].reload.speed: unknown key; remove it, or use action, debounce, maxRestartsPerHour, minInterval, targets, then, windows or workloads`),
		"a duration without a unit": reports(oneRule("  reload:", "    debounce: 1"),
			`f.yaml:7: rules[0].reload.debounce: a duration needs a unit; write 1s`),
		"a duration in quotes without a unit": reports(oneRule("  reload:", `    debounce: "1"`),
			`f.yaml:7: rules[0].reload.debounce: "1" cannot be used; write a number with a unit, such as 500ms, 1s or 2m`),
		"a duration longer than time": reports(oneRule("  reload:", "    debounce: 99999999999h"),
			`f.yaml:7: rules[0].reload.debounce: "99999999999h" cannot be used; write a number with a unit, such as 500ms, 1s or 2m`),
		"booleans in quotes or in the old spelling": reports(file("rules:",
			`- {name: a, source: {kind: Secret, namespace: p, name: x}, protect: {guardNamespace: "true"}}`,
			`- {name: b, source: {kind: Secret, namespace: p, name: y}, protect: {guardNamespace: yes}}`),
			`f.yaml:4: rules[0].protect.guardNamespace: must be true or false without quotes, not "true"`,
			`f.yaml:5: rules[1].protect.guardNamespace: must be true or false without quotes, not "yes"`),
		"keys without values, whose lists were all commented out": reports(oneRule("  sync:", "    namespaces:", "      include:", "      # - blog"),
			`f.yaml:8: rules[0].sync.namespaces.include: has no value; write one, or remove it`),
		"an enumeration without a value": reports(oneRule("  reload:", "    action:"),
			`f.yaml:7: rules[0].reload.action: has no value; write Auto, Restart, Refresh, None or Never`),
		"one text in place of a list": reports(oneRule("  sync: {namespaces: {include: blog}}"),
			`f.yaml:6: rules[0].sync.namespaces.include: must be a list, not "blog"; write ["blog"]`),
		"a list in place of labels": reports(oneRule("  sync: {target: {labels: [a]}}"),
			`f.yaml:6: rules[0].sync.target.labels: must be a mapping, not a list`),
		"a mapping in place of rules": reports(file("rules: {name: a}"),
			`f.yaml:3: rules: must be a list, not a mapping; write [{…}]`),
		"a number in place of a label's value": reports(oneRule("  sync:", "    target:", "      labels:", "        a.example/Tier: 1"),
			`f.yaml:9: rules[0].sync.target.labels[a.example/Tier]: must be text; put it in quotes: "1"`),
		"numbers and booleans in place of text, as they are written": reports(oneRule("  sync:", "    target:", "      labels: {version: 1.0, hex: 0x1F, big: 1_000, yes: True}"),
			`f.yaml:8: rules[0].sync.target.labels[big]: must be text; put it in quotes: "1_000"`,
			`f.yaml:8: rules[0].sync.target.labels[hex]: must be text; put it in quotes: "0x1F"`,
			`f.yaml:8: rules[0].sync.target.labels[version]: must be text; put it in quotes: "1.0"`,
			`f.yaml:8: rules[0].sync.target.labels[yes]: must be text; put it in quotes: "True"`),
		"a key of all rules in one of them": reports(oneRule("  compatibility: []", "  reload: {compatibility: [], maxConcurrentRollouts: 1}"),
			`f.yaml:6: rules[0].compatibility: unknown key here; it belongs to reload at the top level of the file, which is about all rules`,
			`f.yaml:7: rules[0].reload.compatibility: unknown key here; it belongs to reload at the top level of the file, which is about all rules`,
			`f.yaml:7: rules[0].reload.maxConcurrentRollouts: unknown key here; it belongs to reload at the top level of the file, which is about all rules`),
		"a key of a rule's section beside it": reports(oneRule("  sync: {}", "  onConflict: Skip"),
			`f.yaml:7: rules[0].onConflict: unknown key here; it belongs to sync of a rule`),
		"a mapping in place of text": reports(oneRule("  protect: {message: {text: no}}"),
			`f.yaml:6: rules[0].protect.message: must be text, not a mapping`),
		"a fraction and a negative number": reports(file("reload: {maxConcurrentRollouts: 1.5}", "safety: {maxDeleteFraction: -1}"),
			`f.yaml:3: reload.maxConcurrentRollouts: must be a whole number without quotes, not 1.5`,
			`f.yaml:4: safety.maxDeleteFraction: is too small; write at least 0`),
		"an enormous number": reports(file("reload: {maxConcurrentRollouts: 99999999999999999999}"),
			`f.yaml:3: reload.maxConcurrentRollouts: is too large; write at most 1000000`),
		"a name that is too long": reports(file("rules:", "- name: "+strings.Repeat("a", 64), "  source: {kind: Secret, namespace: p, name: x}", "  sync: {}"),
			`f.yaml:4: rules[0].name: is 64 characters long; 63 are allowed`),
		"an empty list item and a rule without anything": reports(file("rules:", "-", "- {}"),
			`f.yaml:4: rules[0]: has no value; write one, or remove it`,
			`f.yaml:5: rules[1].name: is missing; add it`,
			`f.yaml:5: rules[1].source: is missing; add it`),
	})
}

const (
	labelKey = "a label's key is NAME or PREFIX/NAME; NAME is at most 63 letters, digits, '-', '_' and '.', " +
		"and begins and ends with a letter or digit; PREFIX is a DNS name"
	labelValue = "a label's value is at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"
)

func TestParseReportsWrongMeanings(t *testing.T) {
	var manyValues []string
	for i := range 800 {
		manyValues = append(manyValues, fmt.Sprintf("%s%d", strings.Repeat("v", 59), i))
	}
	requireReports(t, map[string]badFile{
		"what the API server cannot evaluate": reports(file("protect: {systemIdentities: ["+strings.Repeat("a", 9000)+"]}", "rules:", "- name: a",
			"  source: {kind: Secret, namespace: p, selector: {matchExpressions: [{key: a, operator: In, values: ["+strings.Join(manyValues, ", ")+"]}]}}",
			"  protect: {allow: {users: ["+strings.Repeat("a", 9000)+"]}}"),
			`f.yaml:3: protect.systemIdentities[0]: is longer than any user or group name; remove it`,
			`f.yaml:6: rules[0].source.selector: is too long for the API server to evaluate; use fewer values`,
			`f.yaml:7: rules[0].protect.allow.users[0]: is longer than any user or group name; remove it`),
		"a rule that does nothing": reports(oneRule(),
			`f.yaml:4: rules[0]: does nothing; add sync: {}, protect: {} or reload: {}`),
		"a name for the third time": reports(file("rules:",
			"- {name: a, source: {kind: Secret, namespace: p, name: x}, sync: {}}",
			"- {name: a, source: {kind: Secret, namespace: p, name: y}, sync: {}}",
			"- {name: a, source: {kind: Secret, namespace: p, name: z}, sync: {}}"),
			`f.yaml:5: rules[1].name: "a" is the name of the rule in line 4 already; choose another`,
			`f.yaml:6: rules[2].name: "a" is the name of the rule in line 4 already; choose another`),
		"an object that two rules protect": reports(file("rules:",
			"- {name: a, source: {kind: Secret, namespace: p, name: x}, sync: {}}",
			"- name: b",
			"  source: &x {kind: Secret, namespace: p, name: x}",
			"  protect: {}",
			"- {name: c, source: {kind: ConfigMap, namespace: p, name: x}, protect: {}}",
			"- name: d",
			"  source: *x",
			"  protect: {}"),
			`f.yaml:11: rules[3].protect: Secret/p/x is protected by rule b already, in line 7; remove one of them`),
		"globs, labels and durations out of bounds": reports(oneRule(
			"  sync:",
			"    namespaces:",
			"      include:",
			"      - blog",
			`      - "[a"`,
			"    target:",
			"      name: Blog",
			"      labels:",
			"        app.kubernetes.io/managed-by: us",
			"      copyLabels: [team, argocd.argoproj.io/secret-type, app.kubernetes.io/instance]",
			`      copyAnnotations: ["helm.sh/*", "meta.helm.sh/release-*", "a b"]`,
			"  reload: {debounce: 99m}"),
			`f.yaml:10: rules[0].sync.namespaces.include[1]: "[a" cannot be used: not a glob: check its brackets and backslashes`,
			`f.yaml:12: rules[0].sync.target.name: "Blog" cannot be used: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character`,
			`f.yaml:14: rules[0].sync.target.labels[app.kubernetes.io/managed-by]: Helm takes over objects with it, and deletes them with the release`,
			`f.yaml:15: rules[0].sync.target.copyLabels[2]: "app.kubernetes.io/instance" cannot be used: never copies anything: Argo CD tracks the objects of an application by it, and would prune the clone`,
			`f.yaml:16: rules[0].sync.target.copyAnnotations[1]: "meta.helm.sh/release-*" cannot be used: never copies anything: Helm takes over objects with it, and deletes them with the release`,
			`f.yaml:16: rules[0].sync.target.copyAnnotations[2]: "a b" cannot be used: never copies anything: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character`,
			`f.yaml:17: rules[0].reload.debounce: "1h39m0s" cannot be used: must be between 0s and 10m0s`),
		"sources by selector": reports(file("rules:",
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
			`f.yaml:5: rules[0].source.selector: a source has a name or a selector, not both; remove one`,
			`f.yaml:8: rules[1].source.selector: would select every object of the namespace; give it a label to match`,
			`f.yaml:12: rules[2].sync.target.name: would give the clones of all selected sources one name; remove it`),
		"selectors, with all that is wrong in each": reports(file("rules:",
			"- name: a",
			"  source:",
			"    kind: Secret",
			"    namespace: p",
			"    selector:",
			"      matchLabels: {'a/b/c': x, good: -bad}",
			"      matchExpressions:",
			"      - {key: 'a b', operator: in}",
			"      - {key: c, operator: In}",
			"      - {key: d, operator: Exists, values: [x]}",
			"  sync: {namespaces: {selector: {matchExpressions: [{key: '-', operator: NotIn, values: ['a b']}]}}}",
			"  reload: {workloads: {selector: {matchLabels: {'': x}}}}"),
			`f.yaml:9: rules[0].source.selector.matchLabels[a/b/c]: "a/b/c" cannot be used: `+labelKey,
			`f.yaml:9: rules[0].source.selector.matchLabels[good]: "-bad" cannot be used: `+labelValue,
			`f.yaml:11: rules[0].source.selector.matchExpressions[0].key: "a b" cannot be used: `+labelKey,
			`f.yaml:11: rules[0].source.selector.matchExpressions[0].operator: must be In, NotIn, Exists or DoesNotExist, not "in"`,
			`f.yaml:12: rules[0].source.selector.matchExpressions[1].values: operator In needs at least one value`,
			`f.yaml:13: rules[0].source.selector.matchExpressions[2].values: operator Exists takes no values; remove them, or write In or NotIn`,
			`f.yaml:14: rules[0].sync.namespaces.selector.matchExpressions[0].key: "-" cannot be used: `+labelKey,
			`f.yaml:14: rules[0].sync.namespaces.selector.matchExpressions[0].values[0]: "a b" cannot be used: `+labelValue,
			`f.yaml:15: rules[0].reload.workloads.selector.matchLabels[]: name the label`),
		"fields of a schedule": reports(file("reload:", "  windows:",
			"  - {schedule: 0 25 * * *, duration: 1h}",
			"  - {schedule: 0 2 * * 7, duration: 1h}",
			"  - {schedule: 0 2 * foo 1, duration: 1h}",
			"  - {schedule: 0 2 * *, duration: 1h}"),
			`f.yaml:5: reload.windows[0].schedule: "0 25 * * *" cannot be used: "25" cannot be the hour; write 0 to 23, *, or a list, range or step of these`,
			`f.yaml:6: reload.windows[1].schedule: "0 2 * * 7" cannot be used: "7" cannot be the day of the week; write 0 (Sunday) to 6, or SUN to SAT, *, or a list, range or step of these`,
			`f.yaml:7: reload.windows[2].schedule: "0 2 * foo 1" cannot be used: "foo" cannot be the month; write 1 to 12, or JAN to DEC, *, or a list, range or step of these`,
			`f.yaml:8: reload.windows[3].schedule: "0 2 * *" cannot be used: write a cron expression of five fields, such as "0 2 * * 6": minute, hour, day of the month, month, day of the week`),
		"clones denied by a rule that makes none": reports(oneRule("  protect:", "    clones: Deny"),
			`f.yaml:7: rules[0].protect.clones: the rule makes no clones; add sync: {}, or remove it`),
		"other tools' opt-in where there is none": reports(file("reload: {optIn: false, compatibility: [Wave]}"),
			`f.yaml:3: reload.compatibility: lets workloads opt in by annotations of other tools, which optIn: false disables; remove one of them`),
		"a section for namespaces that cannot be": reports(file("reload:",
			"  namespaces:",
			"  - {include: ['a[']}",
			"  - {action: None}",
			"  - {objects: {kinds: [Pod], exclude: ['']}, workload: {}}",
			"  - {objects: {kinds: []}, namespaces: {}}"),
			`f.yaml:5: reload.namespaces[0].include[0]: "a[" cannot be used: not a glob: check its brackets and backslashes`,
			`f.yaml:6: reload.namespaces[1].action: must be Auto, Restart or Refresh, not "None"`,
			`f.yaml:7: reload.namespaces[2].objects.exclude[0]: an empty pattern matches nothing; remove it`,
			`f.yaml:7: reload.namespaces[2].objects.kinds[0]: must be Secret or ConfigMap, not "Pod"`,
			`f.yaml:7: reload.namespaces[2].workload: unknown key; did you mean "workloads"?`,
			`f.yaml:8: reload.namespaces[3].namespaces: unknown key; remove it, or use action, exclude, include, objects, selector or workloads`,
			`f.yaml:8: reload.namespaces[3].objects.kinds: an empty list selects nothing; write [Secret], [ConfigMap], or both`),
		"a certificate of Headwater's own making": reports(file("protect: {certificates: {secretName: headwater-webhook-tls}}"),
			`f.yaml:3: protect.certificates.secretName: is reserved for the certificate that Headwater issues itself; choose another name or omit secretName`),
		"a certificate that no Secret can hold": reports(file("protect: {certificates: {secretName: Mine}}"),
			`f.yaml:3: protect.certificates.secretName: "Mine" cannot be used: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character`),
		"a pace that cannot be kept": reports(file("rules:",
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
			`f.yaml:7: rules[0].reload.minInterval: "2h0m0s" cannot be used: must be between 0s and 1h0m0s`,
			`f.yaml:8: rules[0].reload.then.httpPost.path: "reload" cannot be used: write a path, such as /-/reload`,
			`f.yaml:10: reload.confirmRefreshAfter: "1m0s" cannot be used: must be between 0s and 30s`,
			`f.yaml:12: reload.windows[0].schedule: "weekly" cannot be used: write a cron expression of five fields, such as "0 2 * * 6": minute, hour, day of the month, month, day of the week`,
			`f.yaml:13: reload.windows[1].duration: "5s" cannot be used: must be between 1m0s and 168h0m0s`,
			`f.yaml:13: reload.windows[1].timeZone: "Mars" cannot be used: write a name of the IANA database, such as Europe/Berlin`),
	})
}
