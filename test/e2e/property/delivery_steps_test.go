package property

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// step does one thing with each rule, or with the cluster.
func (w *deliveryWorld) step() {
	if w.oneIn(3) {
		w.choose([]choice{
			{3, w.comeOrGo},
			{3, w.move},
			{2, w.sickenOrHeal},
			{2, w.killAtRest},
			{2, w.rollOut},
			{1, w.recreate},
			{2, w.scale},
			{1, w.rename},
			{1, w.crashEverywhere},
			{4, w.forgeRecord},
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
	waits, held := m.verdict == revisions.Delivering, m.verdict == revisions.Held
	// A revision that is rejected for the second time may be to blame for what fails since
	// between, even where it did not come again.
	rejected := m.verdict == revisions.Rejected && m.newest == m.value && !strings.HasPrefix(m.value, invalidValue) && !w.anySick()
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
		{weight(m.stages && !w.anySick() && !w.crashesShared(), 1), func() { w.edit(m, goodValue, true) }}, // nobody looks first at what fails already
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
		{weight(m.stages, 1), func() { m.empty = !m.empty; w.reconfigured(m) }},
		{1, func() { w.forget(m) }},
		{weight(!m.stages || m.pinned == "" && !held && m.verdict != revisions.Rejected, 1), func() { m.setStages(!m.stages); w.reconfigured(m) }},
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

// crashesShared reports whether the consumer that reads both clones crashes.
func (w *deliveryWorld) crashesShared() bool {
	return slices.ContainsFunc(w.models, func(m *model) bool { return strings.HasPrefix(m.have[sharedNamespace], crashValue) })
}

// crashEverywhere lets a bad value skip the stages. It is done alone, because it may fail
// what the other rule brings to the consumer of both meanwhile.
func (w *deliveryWorld) crashEverywhere() {
	if m := pick(w, w.models); m.stages && !w.anySick() {
		w.edit(m, crashValue, true)
	}
}

// ask runs a command, which is possible, and does to the model what it is for.
func (w *deliveryWorld) ask(m *model, verb string, then func()) {
	w.Logf("%s: %s", m.rule, verb)
	w.Reported(m.rule)
	stderr, exit := w.steer(m, verb)
	require.Zero(w, exit, stderr)
	then()
}

// rollbackTo rolls back to a good revision that was delivered.
func (w *deliveryWorld) rollbackTo(m *model) {
	all := w.recordedIf(m, func(r recorded) bool {
		return strings.HasPrefix(r.value, goodValue) && r.value != m.value && r.verdict == revisions.Delivered
	})
	if len(all) == 0 {
		return
	}
	to := pick(w, all[max(0, len(all)-10):]) // so recent that it is kept for long
	w.Logf("%s: rollback to %d, %s", m.rule, to.number, to.value)
	w.Reported(m.rule)
	stderr, exit := w.steer(m, "rollback", "--to", strconv.Itoa(to.number), "--yes")
	require.Zero(w, exit, stderr)
	m.rollbackTo(to.value)
}

// recordedIf returns the recorded revisions of m that accept is true for, oldest first.
func (w *deliveryWorld) recordedIf(m *model, accept func(recorded) bool) []recorded {
	all, err := w.recorded(w.Context(), m)
	require.NoError(w, err)
	return slices.DeleteFunc(all, func(r recorded) bool { return !accept(r) })
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

// forget deletes a revision that neither is nor becomes anything: an older one.
func (w *deliveryWorld) forget(m *model) {
	all := w.recordedIf(m, func(r recorded) bool {
		old := r.verdict == revisions.Superseded || r.verdict == revisions.Delivered && strings.HasPrefix(r.value, goodValue)
		return old && !slices.Contains([]string{m.value, m.stable, m.newest, m.pinned}, r.value)
	})
	if len(all) == 0 {
		return
	}
	one := pick(w, all)
	w.Logf("%s: delete revision %d, %s", m.rule, one.number, one.value)
	w.remove(object.Ref{Kind: m.kind, Namespace: lab.Namespace, Name: one.name})
}

// rollOut changes the pod template of a consumer, as its owner does.
func (w *deliveryWorld) rollOut() {
	namespace, m := w.anyNamespace(), pick(w, w.models)
	w.Logf("roll out %s in %s", m.rule, namespace)
	w.patch(namespace, m, fmt.Sprintf(`{"template":{"metadata":{"annotations":{"version":%q}}}}`, w.value("v")))
}

// recreate has a consumer end all its pods before it starts others.
func (w *deliveryWorld) recreate() {
	namespace, m := w.anyNamespace(), pick(w, w.models)
	w.Logf("recreate %s in %s", m.rule, namespace)
	w.patch(namespace, m, `{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}`)
}

// scale ends the pods of the consumers in a namespace, or starts some.
func (w *deliveryWorld) scale() {
	namespace := pick(w, moving)
	if w.rings[namespace] == "" || w.sick(namespace) {
		return
	}
	replicas := 0
	if w.idleIn[namespace] {
		replicas = 1
	}
	w.Logf("scale %s to %d", namespace, replicas)
	w.idleIn[namespace] = replicas == 0
	for _, m := range w.models {
		w.patch(namespace, m, fmt.Sprintf(`{"replicas":%d}`, replicas))
	}
}

// rename renames a rule, which changes nothing of what it does.
func (w *deliveryWorld) rename() {
	m := pick(w, w.models)
	if renamed, was := strings.CutSuffix(m.rule, "-renamed"); was {
		m.rule = renamed
	} else {
		m.rule += "-renamed"
	}
	w.Logf("rename to %s", m.rule)
	w.configure()
}

func (w *deliveryWorld) patch(namespace string, m *model, spec string) {
	body := []byte(`{"spec":` + spec + `}`)
	_, err := w.Admin.AppsV1().Deployments(namespace).Patch(w.Context(), m.consumer(), types.StrategicMergePatchType, body, metav1.PatchOptions{})
	require.NoError(w, err)
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
	switch {
	case w.rings[name] == "" || w.sick(name): // else it would be blamed in a later stage
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
	if w.idleIn[name] || slices.ContainsFunc(w.models, func(m *model) bool { return !m.canSicken(w, name) || !w.isStamped(name, m.consumer()) }) {
		return
	}
	w.Logf("the consumers in %s fail", name)
	w.setSick(name, true)
	for _, m := range w.models {
		m.sicken(w, name)
	}
}

// isStamped reports whether the consumer of a rule in a namespace was restarted once, so
// that its pods say which value they read: of others nobody knows whether they fail with
// one that was delivered.
func (w *deliveryWorld) isStamped(namespace, rule string) bool {
	d, err := w.Admin.AppsV1().Deployments(namespace).Get(w.Context(), rule, metav1.GetOptions{})
	require.NoError(w, err)
	return d.Spec.Template.Annotations[mark.RestartedFor] != ""
}

// killAtRest kills Headwater and starts it. Nothing has changed, so nothing is written:
// invariant D4. But a process believes only its own evidence, and writes that on what is
// under way, as it does that a stage waits for an approval, if the killed one did not yet.
func (w *deliveryWorld) killAtRest() {
	w.Log("kill and start")
	mark := w.Cluster.Mark()
	w.start()
	require.NoError(w, w.headwater.Ready(w.Context()))
	w.Settled(w.headwater)
	waiting := slices.DeleteFunc(slices.Clone(w.models), func(m *model) bool { return !m.underWay() })
	awaits := slices.ContainsFunc(waiting, func(m *model) bool { return m.approval })
	written, candidates := map[string]bool{}, map[string]bool{}
	for _, write := range w.Writes(mark) {
		known := write.Verb == "patch" || write.Verb == "update" && awaits
		require.True(w, known && strings.HasPrefix(write.Name, "headwater-revision-") && !written[write.Verb+write.Name], "%+v", write)
		written[write.Verb+write.Name], candidates[write.Name] = true, true
	}
	require.LessOrEqual(w, len(candidates), len(waiting))
}

// rests waits until all is at rest as the models say, and checks everything that was
// written on the way.
func (w *deliveryWorld) rests() {
	require.NoError(w, w.headwater.Ready(w.Context()))
	for began := time.Now(); ; { // a restart may begin after its clone was written
		for _, m := range w.models {
			w.Eventually(func(ctx context.Context) error { return w.isAsModelled(ctx, m) })
		}
		w.Eventually(w.rolledOut)
		w.Settled(w.headwater)
		if err := w.rolledOut(w.Context()); err == nil || time.Since(began) > lab.Timeout {
			require.NoError(w, err)
			break
		}
	}
	for _, m := range w.models {
		require.NoError(w, w.isAsModelled(w.Context(), m))
	}
	w.checkHistory()
	for _, m := range w.models {
		m.rest()
	}
}

func (w *deliveryWorld) isAsModelled(ctx context.Context, m *model) error {
	all, err := w.recorded(ctx, m)
	if err != nil {
		return err
	}
	var of recorded
	for _, one := range all {
		if one.value == m.value {
			of = one
		}
	}
	if of.verdict != m.verdict {
		return fmt.Errorf("revision %d is %s; want %s", of.number, of.verdict, m)
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
