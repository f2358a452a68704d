package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
)

func TestTargetsThatCannotWorkAreReported(t *testing.T) {
	requireReports(t, map[string]badFile{
		"values of a Secret without leave": reports(file("rules:", "- name: a", "  source: {kind: Secret, namespace: p, name: s}",
			"  reload:", "    targets:", "    - {group: e.io, version: v1, kind: Bucket, set: [{from: k, to: spec.key}]}"),
			"f.yaml:8: rules[0].reload.targets[0].set: would copy Secret values to objects that users without access to Secrets may read; if you want that, set allowSecretValues: true"),
		"values of many sources": reports(file("rules:", "- name: a", "  source: {kind: ConfigMap, namespace: p, selector: {matchLabels: {a: b}}}",
			"  reload:", "    targets:", "    - {group: e.io, version: v1, kind: Bucket, set: [{from: k, to: spec.key}]}"),
			"f.yaml:8: rules[0].reload.targets[0].set: needs one source, given by name"),
		"a declared workload": reports(file("reload: {workloads: [{group: e.io, version: v1, kind: App}]}", "rules:", "- name: a",
			"  source: {kind: Secret, namespace: p, name: s}", "  reload:", "    targets:", "    - {group: e.io, version: v2, kind: App, annotate: true}"),
			"f.yaml:9: rules[0].reload.targets[0]: App is under reload.workloads, and restarted for what it reads; remove one of them"),
		"a field that two rules force": reports(file("rules:", "- name: a", "  source: {kind: ConfigMap, namespace: p, name: s}",
			"  reload:", "    targets:", "    - {group: e.io, version: v1, kind: Bucket, force: true, set: [{from: k, to: spec.key}]}",
			"- name: b", "  source: {kind: ConfigMap, namespace: p, name: t}",
			"  reload:", "    targets:", "    - {group: e.io, version: v1, kind: Bucket, force: true, set: [{from: k, to: .spec.key}]}"),
			"f.yaml:13: rules[1].reload.targets[0].set[0].to: is forced by the rule in line 8 already; remove force from one of them"),
	})
}

func TestTargetsOfASecretNeedLeaveForItsValuesOnly(t *testing.T) {
	parsed := parse(t, file("rules:", "- name: a", "  source: {kind: Secret, namespace: p, name: s}", "  reload:", "    targets:",
		"    - {group: e.io, version: v1, kind: Bucket, annotate: true}",
		"    - {group: e.io, version: v1, kind: Queue, allowSecretValues: true, set: [{from: k, to: .spec.key}]}"))
	sets, err := parsed.Compile("headwater-system")
	require.NoError(t, err)
	require.Len(t, sets.Reload.All(), 1)
	require.IsType(t, &config.Config{}, parsed)
}
