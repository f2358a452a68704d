package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/test/cluster"
)

// stagedRule delivers to two homes, then to the other ones, then to the crowd.
const stagedRule = `- name: staged
  source: {kind: ConfigMap, namespace: chaos-src, name: staged}
  validate: [{key: k, is: Regex, pattern: "[0-9]+"}]
  sync:
    namespaces: {include: ["chaos-home-*", "chaos-crowd-*"]}
    history: 5
    delivery:
      stages:
      - {name: canary, namespaces: {include: [chaos-home-0, chaos-home-1]}, soak: 300ms}
      - {name: homes, namespaces: {include: ["chaos-home-*"]}, soak: 0s}
      rest: {soak: 0s}
`

const (
	staged = "staged"
	// bad begins values that the rule does not allow.
	bad = "bad-"
)

// stageOf returns the stage of stagedRule that a namespace is in.
func stageOf(namespace string) int {
	switch {
	case namespace == home+"0", namespace == home+"1":
		return 0
	case strings.HasPrefix(namespace, home):
		return 1
	default:
		return 2
	}
}

// editStaged writes a value that nobody wrote before, at times one that is not valid.
func (w *world) editStaged(ctx context.Context) error {
	value := w.next()
	if w.rand.IntN(4) == 0 {
		value = bad + value
	}
	_, err := w.stranger.CoreV1().ConfigMaps(sourceNamespace).Patch(ctx, staged, types.MergePatchType,
		fmt.Appendf(nil, `{"data":{"k":%q}}`, value), metav1.PatchOptions{})
	return err
}

// stable is what every clone of stagedRule must have at rest: the source's data or,
// while they are not valid, what the first namespace has.
func (w *world) stable(ctx context.Context) (map[string]string, error) {
	source, err := w.admin.CoreV1().ConfigMaps(sourceNamespace).Get(ctx, staged, metav1.GetOptions{})
	if err != nil || !strings.HasPrefix(source.Data["k"], bad) {
		return dataOf(source), err
	}
	clone, err := w.admin.CoreV1().ConfigMaps(home+"0").Get(ctx, staged, metav1.GetOptions{})
	return dataOf(clone), err
}

func dataOf(configMap *corev1.ConfigMap) map[string]string {
	if configMap == nil {
		return nil
	}
	return configMap.Data
}

// stages checks in which order values came to the clones of stagedRule, by what etcd
// says was written.
type stages struct {
	follower

	report *report
	// had are the values of the homes, by namespace.
	had map[string]map[string]bool
	// passed counts the values that came to a later stage.
	passed map[string]bool
}

func newStages(c *cluster.Cluster, from int64, r *report) *stages {
	s := &stages{report: r, had: map[string]map[string]bool{}, passed: map[string]bool{}}
	s.follower = follower{cluster: c, resource: "configmaps", next: from, see: func(edition cluster.Edition) {
		if configMap, ok := edition.Object.(*corev1.ConfigMap); ok && edition.Name == staged && edition.Namespace != sourceNamespace {
			s.check(edition.Namespace, configMap.Data["k"])
		}
	}}
	return s
}

// check checks one value of a clone.
func (s *stages) check(namespace, value string) {
	if value == scribbled {
		return
	}
	if strings.HasPrefix(value, bad) {
		s.report.violate("%s had %s, which is not valid", namespace, value)
	}
	stage := stageOf(namespace)
	for i := range homes {
		earlier := fmt.Sprint(home, i)
		if stageOf(earlier) < stage && value != "0" && !s.had[earlier][value] {
			s.report.violate("%s had %s before %s", namespace, value, earlier)
		}
	}
	if stage > 0 {
		s.passed[value] = true
	}
	if strings.HasPrefix(namespace, home) {
		if s.had[namespace] == nil {
			s.had[namespace] = map[string]bool{}
		}
		s.had[namespace][value] = true
	}
}
