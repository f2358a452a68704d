package property

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

// step does one thing with each rule, or with the cluster.
func (w *deliveryWorld) step() {
	if w.oneIn(3) {
		w.choose([]choice{
			{3, w.comeOrGo},
			{3, w.move},
			{2, w.sickenOrHeal},
			{2, w.killAtRest},
		})
		return
	}
	for _, m := range w.models {
		w.stepOf(m)
	}
	if w.oneIn(4) {
		w.Log("kill and start meanwhile")
		w.start()
	}
}

// stepOf does something that is possible now.
func (w *deliveryWorld) stepOf(m *model) {
	waits, held := m.verdict == delivery.Delivering, m.verdict == delivery.Held
	// A revision that is rejected for the second time may be to blame for what fails since
	// between, even where it did not come again.
	rejected := m.verdict == delivery.Rejected && m.newest == m.value && !strings.HasPrefix(m.value, invalidValue) && !w.anySick()
	weight := func(possible bool, weight int) int {
		if !possible {
			return 0
		}
		return weight
	}
	w.choose([]choice{
		{4, func() { w.edit(m, goodValue, false) }},
		{weight(m.stages, 4), func() { w.edit(m, crashValue, false) }},
		{weight(m.stages, 2), func() { w.edit(m, invalidValue, false) }},
		{weight(m.stages, 1), func() { w.edit(m, goodValue, true) }},
		{weight(m.stages, 1), func() { w.edit(m, crashValue, true) }},
		{weight(m.stages && m.value != m.stable, 2), func() { w.editTo(m, m.stable, false) }},
		{weight(waits && !m.approved, 4), func() { w.ask(m, "promote", m.promote) }},
		{weight(waits && !m.paused, 2), func() { w.ask(m, "pause", func() { m.paused = true }) }},
		{weight(m.paused || m.pinned != "", 4), func() { w.ask(m, "resume", m.resume) }},
		{weight(waits || held, 1), func() { w.ask(m, "rollback", m.reject) }},
		{1, func() { w.rollbackTo(m) }},
		{weight(rejected || held, 2), func() { w.ask(m, "retry", func() { m.retry(w) }) }},
		{weight(!held, 2), func() { w.deleteClone(m) }}, // its report says what the held revision broke
		{2, func() { w.tamper(m) }},
		{weight(m.hold && m.stages, 1), func() { m.setApproval(!m.approval); w.reconfigured(m) }},
		{weight(m.stages, 1), func() { m.half = !m.half; w.reconfigured(m) }},
		{weight(!m.stages || m.pinned == "" && !held && m.verdict != delivery.Rejected, 1), func() { m.setStages(!m.stages); w.reconfigured(m) }},
	})
}

func (w *deliveryWorld) edit(m *model, kind string, allAtOnce bool) {
	w.editTo(m, w.value(kind), allAtOnce)
}

func (w *deliveryWorld) editTo(m *model, value string, allAtOnce bool) {
	w.Logf("%s: edit to %s, at once %t", m.rule, value, allAtOnce)
	m.edit(w, value, allAtOnce)
	w.write(m, allAtOnce)
}

// ask runs a command, which is possible, and does to the model what it is for.
func (w *deliveryWorld) ask(m *model, verb string, then func()) {
	w.Logf("%s: %s", m.rule, verb)
	stderr, exit := w.steer(m, verb)
	require.Zero(w, exit, stderr)
	then()
}

// rollbackTo rolls back to a good revision that was not rejected.
func (w *deliveryWorld) rollbackTo(m *model) {
	values, verdicts, err := w.recorded(w.Context(), m)
	require.NoError(w, err)
	var numbers []int
	for number, value := range values {
		if strings.HasPrefix(value, goodValue) && value != m.value && verdicts[number] != delivery.Rejected {
			numbers = append(numbers, number)
		}
	}
	if len(numbers) == 0 {
		return
	}
	slices.Sort(numbers)
	to := pick(w, numbers[max(0, len(numbers)-10):]) // so recent that it is kept for long
	w.Logf("%s: rollback to %d, %s", m.rule, to, values[to])
	stderr, exit := w.steer(m, "rollback", "--to", strconv.Itoa(to))
	require.Zero(w, exit, stderr)
	m.rollbackTo(values[to])
}

func (w *deliveryWorld) reconfigured(m *model) {
	w.Logf("%s: configuration: stages %t, approval %t, half %t", m.rule, m.stages, m.approval, m.half)
	w.configure()
}

func (w *deliveryWorld) anyNamespace() string {
	return pick(w, slices.DeleteFunc(slices.Concat(steady, moving), func(name string) bool { return w.rings[name] == "" }))
}

func (w *deliveryWorld) deleteClone(m *model) {
	namespace := w.anyNamespace()
	w.Logf("%s: delete the clone in %s", m.rule, namespace)
	w.remove(object.Ref{Kind: m.kind, Namespace: namespace, Name: sharedName})
	m.give(namespace, m.assigned(w, namespace))
}

// tamper changes the data of a clone, or takes its revision off.
func (w *deliveryWorld) tamper(m *model) {
	namespace, drift := w.anyNamespace(), w.oneIn(2)
	w.Logf("%s: tamper with the clone in %s, its data: %t", m.rule, namespace, drift)
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, mark.Revision)
	if drift {
		body = []byte(`{"data":{"` + valueKey + `":"ZHJpZnQ="}}`)
		m.allow(namespace, "drift")
		m.allow(namespace, "ZHJpZnQ=")
	}
	var err error
	if m.kind == object.Secret {
		_, err = w.Admin.CoreV1().Secrets(namespace).Patch(w.Context(), sharedName, types.MergePatchType, body, metav1.PatchOptions{})
	} else {
		_, err = w.Admin.CoreV1().ConfigMaps(namespace).Patch(w.Context(), sharedName, types.MergePatchType, body, metav1.PatchOptions{})
	}
	require.NoError(w, err)
	if !drift && m.stages {
		m.give(namespace, m.assigned(w, namespace))
	}
}

// comeOrGo creates a namespace, or deletes one.
func (w *deliveryWorld) comeOrGo() {
	name := pick(w, moving)
	if w.rings[name] != "" {
		w.Logf("delete namespace %s", name)
		w.deleteNamespace(name)
		return
	}
	w.Logf("create namespace %s", name)
	w.createNamespace(name)
}

// move moves a namespace into the canary stage, or out of it.
func (w *deliveryWorld) move() {
	name, ring := moving[0], canaryRing
	blamed := slices.ContainsFunc(w.models, func(m *model) bool { return m.blamed[name] })
	switch {
	case w.rings[name] == "" || blamed: // else it is blamed in a later stage
		return
	case w.rings[name] == canaryRing:
		ring = noRing
	}
	w.Logf("namespace %s: ring %s", name, ring)
	w.relabel(name, ring)
	for _, m := range w.models {
		m.arrive(w, name)
	}
}

// sickenOrHeal lets the consumers in a namespace fail, whatever they read, or recover.
func (w *deliveryWorld) sickenOrHeal() {
	name := pick(w, moving)
	if w.rings[name] == "" {
		return
	}
	if w.sick(name) {
		w.Logf("the consumers in %s recover", name)
		w.heal(name)
		return
	}
	if slices.ContainsFunc(w.models, func(m *model) bool { return !m.canSicken(w, name) }) {
		return
	}
	w.Logf("the consumers in %s fail", name)
	w.setSick(name, true)
	for _, m := range w.models {
		m.sicken(w, name)
	}
}

// killAtRest kills Headwater and starts it. Nothing has changed, so nothing is written:
// invariant D4.
func (w *deliveryWorld) killAtRest() {
	w.Log("kill and start")
	mark := w.Cluster.Mark()
	w.start()
	require.NoError(w, w.headwater.Ready(w.Context()))
	w.Settled(w.headwater)
	require.NoError(w, w.NoWrites(mark)(w.Context()))
}

// rests waits until all is at rest as the models say, and checks everything that was
// written on the way.
func (w *deliveryWorld) rests() {
	require.NoError(w, w.headwater.Ready(w.Context()))
	for _, m := range w.models {
		w.Eventually(func(ctx context.Context) error { return w.isAsModelled(ctx, m) })
	}
	w.Eventually(w.rolledOut)
	w.Settled(w.headwater)
	require.NoError(w, w.rolledOut(w.Context()))
	for _, m := range w.models {
		require.NoError(w, w.isAsModelled(w.Context(), m))
	}
	w.checkHistory()
	for _, m := range w.models {
		m.rest()
	}
}

func (w *deliveryWorld) isAsModelled(ctx context.Context, m *model) error {
	values, verdicts, err := w.recorded(ctx, m)
	if err != nil {
		return err
	}
	of := 0
	for number, value := range values {
		if value == m.value && number > of {
			of = number
		}
	}
	if verdicts[of] != m.verdict {
		return fmt.Errorf("revision %d is %s; want %s", of, verdicts[of], m)
	}
	have, err := w.values(ctx, m)
	if err != nil {
		return err
	}
	for namespace, want := range m.have {
		if have[namespace] != want {
			return fmt.Errorf("%s has %q; want %s", namespace, have[namespace], m)
		}
	}
	return nil
}
