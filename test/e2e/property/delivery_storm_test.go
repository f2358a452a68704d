package property

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
)

// stormSteps are done without a pause.
const stormSteps = 15

// storm does one thing after the other without waiting, so that the order in which
// Headwater sees them is not known. Whatever it is, no bad value leaves the first stage,
// and a good one comes to a stage after the stages before. In the end, a last edit
// reaches every namespace.
func (w *deliveryWorld) storm() {
	w.calm()
	w.Log("storm")
	canaries := map[string]bool{}
	var written []map[string]bool // good values, by model
	for _, m := range w.models {
		written = append(written, map[string]bool{})
		w.editTo(m, w.value(crashValue), false)
	}
	for range stormSteps {
		for name, ring := range w.rings {
			canaries[name] = canaries[name] || ring == canaryRing
		}
		at := w.IntN(len(w.models))
		w.stormStep(w.models[at], written[at])
	}
	w.ends(written)
	editions := w.history()
	for i, m := range w.models {
		values := valuesOf(m, editions)
		for _, one := range values {
			require.False(w, strings.HasPrefix(one.value, invalidValue), "%s had %s", one.namespace, one.value)
			require.False(w, strings.HasPrefix(one.value, crashValue) && !canaries[one.namespace], "%s had %s", one.namespace, one.value)
		}
		for value := range written[i] {
			m.value, m.inOrder, m.began = value, true, nil
			require.NoError(w, w.inOrder(m, values))
		}
	}
	w.models[0].value, w.models[1].value = w.models[0].stable, w.models[1].stable
	for _, m := range w.models {
		m.rest()
	}
}

// calm prepares for a storm: every rule has its stages, no bad value is anywhere, and no
// consumer fails.
func (w *deliveryWorld) calm() {
	for _, name := range moving {
		if w.sick(name) {
			w.heal(name)
		}
	}
	for _, m := range w.models {
		if m.underWay() {
			w.ask(m, "rollback", m.reject)
		}
		m.setStages(true)
		m.half = true
	}
	w.configure()
	w.rests()
}

func (w *deliveryWorld) stormStep(m *model, written map[string]bool) {
	ask := func(verb string) func() {
		return func() {
			_, exit := w.steer(m, verb) // it may be too late for it
			w.Logf("%s: %s, exit %d", m.rule, verb, exit)
		}
	}
	w.choose([]choice{
		{6, func() {
			value := w.value(goodValue)
			written[value] = true
			w.editTo(m, value, false)
		}},
		{2, func() { w.editTo(m, w.value(invalidValue), false) }},
		{2, ask("promote")},
		{1, ask("pause")},
		{1, ask("resume")},
		{1, ask("rollback")},
		{1, ask("retry")},
		{2, func() { w.deleteLater(m) }},
		{2, w.start},
		{3, w.comeOrGoAtOnce},
		{2, w.move},
	})
}

// deleteLater deletes the clone of a namespace that is of no canary stage.
func (w *deliveryWorld) deleteLater(m *model) {
	namespace := pick(w, steady[1:])
	w.Logf("%s: delete the clone in %s", m.rule, namespace)
	w.remove(object.Ref{Kind: m.kind, Namespace: namespace, Name: sharedName})
}

// comeOrGoAtOnce is comeOrGo without waiting for a namespace that terminates.
func (w *deliveryWorld) comeOrGoAtOnce() {
	name := pick(w, moving)
	_, err := w.Admin.CoreV1().Namespaces().Get(w.Context(), name, metav1.GetOptions{})
	switch {
	case w.rings[name] != "":
		w.Logf("delete namespace %s", name)
		w.deleteNamespace(name)
	case apierrors.IsNotFound(err):
		w.Logf("create namespace %s", name)
		w.createNamespace(name)
	}
}

// ends edits each source for the last time, and waits until every namespace has that.
func (w *deliveryWorld) ends(written []map[string]bool) {
	require.NoError(w, w.headwater.Ready(w.Context()))
	w.Eventually(w.rolledOut)
	w.Settled(w.headwater)
	for i, m := range w.models {
		value := w.value(goodValue)
		written[i][value] = true
		m.have = maps.Clone(w.rings)
		w.editTo(m, value, false)
		m.newest = value
		m.pass(value)
	}
	for _, m := range w.models {
		w.Eventually(func(ctx context.Context) error {
			err := w.isAsModelled(ctx, m)
			if err != nil && m.approval {
				_, _ = w.steer(m, "promote")
			}
			return err
		})
	}
	w.Eventually(w.rolledOut)
	w.Settled(w.headwater)
	for _, m := range w.models {
		require.NoError(w, w.isAsModelled(w.Context(), m))
		require.ElementsMatch(w, slices.Collect(maps.Keys(w.rings)), slices.Collect(maps.Keys(m.have)))
	}
}
