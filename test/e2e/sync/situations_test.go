package sync

import (
	"context"
	"fmt"
	"maps"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// allSituations are keyed by a sentence that begins with what happens to what.
func allSituations() map[string]situation {
	all := map[string]situation{}
	for _, some := range []map[string]situation{ofSources(), ofClones(), ofNamespaces(), ofRules()} {
		maps.Copy(all, some)
	}
	return all
}

func ofSources() map[string]situation {
	return map[string]situation{
		"source created: its clones appear": {
			sourceless: true, before: nowhere, act: scene.createSource, after: inBoth, wrote: each("create"),
		},
		"source modified: its clones follow": {
			act:   editing("src", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") }),
			after: inEach("k=v2 by MX"), wrote: each("update"),
		},
		"source deleted: its clones stay":                      {act: deleting("src")},
		"source deleted: its clones go with it, where told so": {rules: ruleWith("onSourceDeleted: Delete"), act: deleting("src"), after: nowhere, wrote: each("delete")},
		"source relabelled: once selected, its clones appear": {
			rules: selecting(standardRule), sourceless: true, before: nowhere,
			given: func(s scene) { s.createSource(); labelling("src", "share", "no")(s) },
			act:   labelling("src", "share", "yes"), after: inBoth, wrote: each("create"),
		},
		"source relabelled: no longer selected, its clones stay": {
			rules: selecting(standardRule), act: labelling("src", "share", "no"),
		},
		"source relabelled: no longer selected, its clones go, where told so": {
			rules: selecting(ruleWith("onSourceDeleted: Delete")), act: labelling("src", "share", "no"), after: nowhere, wrote: each("delete"),
		},
		"source relabelled: a label that is copied follows": {
			rules: ruleWith("target: {copyLabels: [color]}"), before: inEach("k=v color:red by MX"),
			act: labelling("src", "color", "blue"), after: inEach("k=v color:blue by MX"), wrote: each("update"),
		},
		"source relabelled: a copied label that is taken away goes from the clones": {
			rules: ruleWith("target: {copyLabels: [color]}"), before: inEach("k=v color:red by MX"),
			act: unlabelling("src", "color"), after: inBoth, wrote: each("update"),
		},
		"source relabelled: a label that is not copied concerns nobody": {act: labelling("src", "color", "blue")},
	}
}

func ofClones() map[string]situation {
	theirs := func(value string) func(scene) {
		return func(s scene) {
			s.Secret(s.place("a"), "shared", map[string]string{"k": value})
			s.createSource()
		}
	}
	return map[string]situation{
		"clone created: by a stranger, it is theirs": {
			sourceless: true, before: nowhere, act: theirs("theirs"),
			after: map[string]string{"a/shared": "k=theirs", "b/shared": cloned}, wrote: []string{"create b/shared"},
		},
		"clone created: by a stranger, it is adopted if it is equal and the rule says so": {
			rules: ruleWith("onConflict: AdoptIfEqual"), sourceless: true, before: nowhere, act: theirs("v"),
			after: inBoth, wrote: []string{"update a/shared", "create b/shared"},
		},
		"clone created: by a stranger, it is not adopted if it differs": {
			rules: ruleWith("onConflict: AdoptIfEqual"), sourceless: true, before: nowhere, act: theirs("theirs"),
			after: map[string]string{"a/shared": "k=theirs", "b/shared": cloned}, wrote: []string{"create b/shared"},
		},
		"clone created: by a stranger, it is overwritten if the rule says so": {
			rules: ruleWith("onConflict: Overwrite"), sourceless: true, before: nowhere, act: theirs("theirs"),
			after: inBoth, wrote: []string{"update a/shared", "create b/shared"},
		},
		"clone modified: it is put right": {
			act: editing("a", func(s *corev1.Secret) { s.Data["k"] = []byte("wrong") }), wrote: []string{"update a/shared"},
		},
		"clone deleted: it is restored": {act: deleting("a"), wrote: []string{"create a/shared"}},
		"clone relabelled: our label is put back": {
			act: unlabelling("a", mark.CloneLabel), wrote: []string{"update a/shared"},
		},
		"clone relabelled: the label that names its rule is put back, by one write": {
			act: unlabelling("a", mark.Rule), wrote: []string{"update a/shared"},
		},
		"clone relabelled: a label of the rule's is put back": {
			rules: ruleWith("target: {labels: {team: platform}}"), before: inEach("k=v team:platform by MX"),
			act: labelling("a", "team", "a"), wrote: []string{"update a/shared"},
		},
		"clone relabelled: a label of somebody else's stays": {
			act:   labelling("a", "team", "a"),
			after: map[string]string{"a/shared": "k=v team:a by MX", "b/shared": cloned},
		},
	}
}

func ofNamespaces() map[string]situation {
	return map[string]situation{
		"namespace created: it gets its clone": {
			act:   func(s scene) { s.Namespace(s.place("c")) },
			after: map[string]string{"a/shared": cloned, "b/shared": cloned, "c/shared": cloned}, wrote: []string{"create c/shared"},
		},
		"namespace modified: an annotation concerns nobody": {
			act: func(s scene) { s.patchNamespace("a", `{"metadata":{"annotations":{"note":"x"}}}`) },
		},
		"namespace deleted: nothing is left to do": {act: scene.deleteNamespaceA, after: inB},
		"namespace relabelled: once selected, it gets its clone": {
			rules: inTier("gold", standardRule), before: inB,
			given: tiering("a", "silver"), act: tiering("a", "gold"), after: inBoth, wrote: []string{"create a/shared"},
		},
		"namespace relabelled: no longer selected, it loses its clone": {
			rules: inTier("gold", standardRule), act: tiering("a", "silver"), after: inB, wrote: []string{"delete a/shared"},
		},
		"namespace relabelled: no longer selected, it keeps its clone, where told so": {
			rules: inTier("gold", ruleWith("onNamespaceUnmatched: Retain")), act: tiering("a", "silver"),
		},
		"namespace relabelled: a label that nobody selects by concerns nobody": {act: tiering("a", "silver")},
	}
}

func ofRules() map[string]situation {
	return map[string]situation{
		"rule created: its clones appear": {rules: noRule, before: nowhere, then: standardRule, after: inBoth, wrote: each("create")},
		"rule modified: under another name, the old clones stay": {
			then:  ruleWith("target: {name: other}"),
			after: map[string]string{"a/shared": cloned, "b/shared": cloned, "a/other": cloned, "b/other": cloned}, wrote: []string{"create a/other", "create b/other"},
		},
		"rule modified: under another name, the old clones go, where told so": {
			rules: ruleWith("onRuleRemoved: Delete"), then: ruleWith("onRuleRemoved: Delete, target: {name: other}"),
			after: map[string]string{"a/other": cloned, "b/other": cloned},
			wrote: append(each("delete"), "create a/other", "create b/other"),
		},
		"rule modified: a label that it no longer adds goes from the clones": {
			rules: ruleWith("target: {labels: {team: platform}}"), before: inEach("k=v team:platform by MX"),
			then: standardRule, after: inBoth, wrote: each("update"),
		},
		"rule deleted: its clones stay": {then: noRule},
		"rule deleted: its clones go, where told so": {
			rules: ruleWith("onRuleRemoved: Delete"), then: noRule, after: nowhere, wrote: each("delete"),
		},
		"rule relabelled: its clones move to the namespaces that it selects now": {
			rules: inTier("gold", standardRule), given: tiering("b", "silver"), before: map[string]string{"a/shared": cloned},
			then: inTier("silver", standardRule), after: inB, wrote: []string{"delete a/shared", "create b/shared"},
		},
		"rule relabelled: clones stay where it no longer selects, where told so": {
			rules: inTier("gold", ruleWith("onNamespaceUnmatched: Retain")), given: tiering("b", "silver"), before: map[string]string{"a/shared": cloned},
			then: inTier("silver", ruleWith("onNamespaceUnmatched: Retain")), after: inBoth, wrote: []string{"create b/shared"},
		},
	}
}

func editing(suffix string, change func(*corev1.Secret)) func(scene) {
	return func(s scene) { s.Edit(s.place(suffix), "shared", change) }
}

func labelling(suffix, key, value string) func(scene) {
	return editing(suffix, func(s *corev1.Secret) { s.Labels[key] = value })
}

func unlabelling(suffix, key string) func(scene) {
	return editing(suffix, func(s *corev1.Secret) { delete(s.Labels, key) })
}

func deleting(suffix string) func(scene) {
	return func(s scene) {
		require.NoError(s, s.Admin.CoreV1().Secrets(s.place(suffix)).Delete(s.Context(), "shared", metav1.DeleteOptions{}))
	}
}

func tiering(suffix, tier string) func(scene) {
	return func(s scene) { s.patchNamespace(suffix, fmt.Sprintf(`{"metadata":{"labels":{"tier":%q}}}`, tier)) }
}

func (s scene) patchNamespace(suffix, patch string) {
	_, err := s.Admin.CoreV1().Namespaces().Patch(s.Context(), s.place(suffix), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(s, err)
}

// deleteNamespaceA waits until it is gone with all that is in it.
func (s scene) deleteNamespaceA() {
	namespaces := s.Admin.CoreV1().Namespaces()
	require.NoError(s, namespaces.Delete(s.Context(), s.place("a"), metav1.DeleteOptions{}))
	s.Eventually(func(ctx context.Context) error {
		_, err := namespaces.Get(ctx, s.place("a"), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace is still there (%w)", err)
	})
}
