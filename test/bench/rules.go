package main

import (
	"fmt"
	"strings"
)

// config is what Headwater runs by: the rules of the bench, and more.
func (a *arena) config(more ...string) string {
	var cloning strings.Builder
	protection := ""
	if a.options.protected {
		protection = "  protect: {allow: {clusterRoles: [], users: [" + allowed + "]}}\n"
	}
	for i, source := range a.cloned()[1:] {
		fmt.Fprintf(&cloning, "- name: bench-%d\n  source: {kind: Secret, namespace: %s, name: %s}\n  sync: {namespaces: %s}\n",
			i+1, sourceNamespace, source, selected)
	}
	return `rules:
- name: bench
  source: {kind: Secret, namespace: ` + sourceNamespace + `, name: ` + shared + `}
  sync: {namespaces: ` + selected + `}
` + protection + `  reload: {debounce: 0s, minInterval: 0s, maxRestartsPerHour: 0}
- name: bench-crowd
  source: {kind: Secret, namespace: ` + crowdNamespace + `, name: ` + shared + `}
  reload: {debounce: 0s, minInterval: 0s, maxRestartsPerHour: 0}
- name: bench-few
  source: {kind: Secret, namespace: ` + fewNamespace + `, name: ` + shared + `}
  sync: {namespaces: {include: ["` + homes + `*"]}}
  reload: {debounce: 0s}
` + cloning.String() + strings.TrimPrefix(strings.Join(more, ""), "\n") + `
reload: {maxConcurrentRollouts: 0, maxConcurrentRolloutsPerNamespace: 0}
`
}

// selected are the namespaces that get a clone of each source.
const selected = `{include: ["` + targets + `*", "bench-new-*"]}`

// cloned are the names of the sources that are cloned into every target, the one
// that is measured first.
func (a *arena) cloned() []string {
	names := []string{shared}
	for i := 1; i < a.options.rules; i++ {
		names = append(names, fmt.Sprintf("%s-%d", shared, i))
	}
	return names
}

// total is how many clones there are, of all rules.
func (a *arena) total() int { return a.clones * a.options.rules }
