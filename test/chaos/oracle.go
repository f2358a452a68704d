package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// judge compares what is there with what the sources, the namespaces and the
// file ask for, by what the documents promise: every clone, and no other.
func (w *world) judge(ctx context.Context) error {
	expected, err := w.expected(ctx)
	if err != nil {
		return err
	}
	found, err := w.clones(ctx)
	if err != nil {
		return err
	}
	var wrong []string
	for place, want := range expected {
		if got, there := found[place]; !there {
			wrong = append(wrong, place+" is missing")
		} else if !maps.Equal(want, got) {
			wrong = append(wrong, place+" is not as its source")
		}
	}
	for place := range found {
		if _, wanted := expected[place]; !wanted {
			wrong = append(wrong, place+" is an orphan")
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("%d clones are wrong: %s", len(wrong), strings.Join(wrong[:min(3, len(wrong))], ", "))
	}
	return w.steal(ctx, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
}

// expected are the clones that must be there, by place.
func (w *world) expected(ctx context.Context) (map[string]map[string]string, error) {
	secret, err := w.admin.CoreV1().Secrets(sourceNamespace).Get(ctx, shared, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	sources := map[string]map[string]string{"Secret/" + shared: textOf(secret.Data)}
	names := []string{flags}
	if w.withExtra {
		names = append(names, extra)
	}
	for _, name := range names {
		configMap, err := w.admin.CoreV1().ConfigMaps(sourceNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		sources["ConfigMap/"+name] = configMap.Data
	}
	if sources["ConfigMap/"+staged], err = w.stable(ctx); err != nil {
		return nil, err
	}
	namespaces, err := w.admin.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]string{}
	for _, namespace := range namespaces.Items {
		switch reached := strings.HasPrefix(namespace.Name, home) || strings.HasPrefix(namespace.Name, crowd); {
		case namespace.Status.Phase == corev1.NamespaceTerminating:
			return nil, fmt.Errorf("namespace %s is still going", namespace.Name)
		case reached:
			for source, data := range sources {
				all[namespace.Name+"/"+source] = data
			}
		}
	}
	return all, nil
}

// clones are all objects that bear the mark.
func (w *world) clones(ctx context.Context) (map[string]map[string]string, error) {
	marked := metav1.ListOptions{LabelSelector: mark.CloneLabel}
	secrets, err := w.admin.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, marked)
	if err != nil {
		return nil, err
	}
	configMaps, err := w.admin.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, marked)
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]string{}
	for _, secret := range secrets.Items {
		all[secret.Namespace+"/Secret/"+secret.Name] = textOf(secret.Data)
	}
	for _, configMap := range configMaps.Items {
		all[configMap.Namespace+"/ConfigMap/"+configMap.Name] = configMap.Data
	}
	return all, nil
}

func textOf(data map[string][]byte) map[string]string {
	text := map[string]string{}
	for key, value := range data {
		text[key] = string(value)
	}
	return text
}

// state is what the judgement of restarts needs of a moment at rest.
type state struct {
	source    map[string]string // the shared Secret
	attempts  map[string]int
	scribbled map[string]int
	consumers map[consumer]standing
}

// standing is how often a consumer was rolled out so far, and whether it was then
// found to run old data.
type standing struct {
	rollouts int
	late     bool
}

func (w *world) look(ctx context.Context) (state, error) {
	s := state{attempts: maps.Clone(w.attempts), scribbled: maps.Clone(w.scribbled), consumers: map[consumer]standing{}}
	secret, err := w.admin.CoreV1().Secrets(sourceNamespace).Get(ctx, shared, metav1.GetOptions{})
	if err != nil {
		return s, err
	}
	s.source = textOf(secret.Data)
	for _, c := range consumers() {
		found, err := w.standing(ctx, c)
		if err != nil {
			return s, fmt.Errorf("%s: %w", c, err)
		}
		s.consumers[c] = found
	}
	return s, nil
}

// judgeRestarts says which consumers were restarted although nothing that they
// consume has changed, or more often than it has, and which were not although
// it has.
func judgeRestarts(before, after state) []string {
	var wrong []string
	for c, now := range after.consumers {
		restarts := now.rollouts - before.consumers[c].rollouts
		most := 0
		if c.key != "" {
			most = after.attempts[c.key] - before.attempts[c.key]
		}
		if c.key == "k" { // a scribble, and its being put right
			most += 2 * (after.scribbled[c.namespace] - before.scribbled[c.namespace])
		}
		changed := c.key != "" && before.source[c.key] != after.source[c.key]
		switch {
		case restarts > most:
			wrong = append(wrong, fmt.Sprintf("spurious: %s was restarted %d times for %d changes", c, restarts, most))
		case changed && restarts == 0:
			wrong = append(wrong, fmt.Sprintf("lost: %s was not restarted for a change", c))
		case now.late:
			wrong = append(wrong, fmt.Sprintf("lost: %s was not restarted for the last change", c))
		}
	}
	slices.Sort(wrong)
	return wrong
}
