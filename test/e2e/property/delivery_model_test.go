package property

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// Values of these kinds are unique: no two edits write the same one.
const (
	goodValue    = "good-"
	crashValue   = lab.CrashValue // a container that reads it at its start does not stay up
	invalidValue = "invalid-"     // fails the rule's validation
)

// model is the oracle: what the design of delivery promises about the clones of one
// rule, step by step. It is written from the words of the design, and knows nothing of
// how Headwater decides.
type model struct {
	rule string
	kind object.Kind
	// hold is the rule's onFailure. approval is that of its first stage. stages is
	// false while the rule has no delivery.
	hold, approval, stages bool
	// half is false while the rule has no second stage. empty is true while it has one
	// without namespaces.
	half, empty bool

	// value is the source's, and verdict that on it.
	value   string
	verdict revisions.Verdict
	// paused and approved are of a candidate that waits for an approval.
	paused, approved bool
	// everywhere is true if the candidate skipped the stages.
	everywhere bool
	// stable is the last value that passed every stage. newest is the last recorded.
	stable, newest string
	// pinned is the value that somebody rolled back to, and over the source's by then.
	pinned, over string
	rejected     map[string]bool
	// blamed are the namespaces whose consumers fail, whatever they read, since a
	// candidate came there that was not delivered. A pod of theirs runs that candidate, so
	// it is not known what they do without it, and the next candidate there fails, too.
	blamed map[string]bool
	// have is the value of each namespace.
	have map[string]string
	// began is have at the last rest, and may are the values that each namespace may
	// have had since. inOrder is true if the source's value goes from stage to stage
	// since then.
	began   map[string]string
	may     map[string][]string
	inOrder bool
}

// fleet is what a model must know of the namespaces.
type fleet interface {
	// ring returns the label of a namespace that has one: canary or none.
	ring(namespace string) string
	// idle reports whether the consumers in the namespace have no replicas.
	idle(namespace string) bool
	// sick reports whether the consumers in the namespace fail, whatever they read.
	sick(namespace string) bool
}

// consumer is the name of the Deployment that reads a clone.
func (m *model) consumer() string { return strings.ToLower(string(m.kind)) }

func (m *model) stageOf(f fleet, namespace string) int {
	switch {
	case f.ring(namespace) == canaryRing:
		return 0
	case m.half && strings.HasPrefix(namespace, "dp-h"):
		return 1
	default:
		return 2
	}
}

// reached reports whether the candidate is for the namespace now: at rest, it is
// somewhere only if it waits in the first stage, or if it skipped the stages.
func (m *model) reached(f fleet, namespace string) bool {
	return m.everywhere || m.stageOf(f, namespace) == 0
}

func (m *model) underWay() bool {
	return m.verdict == revisions.Delivering || m.verdict == revisions.Held
}

// give lets a namespace have value.
func (m *model) give(namespace, value string) {
	m.have[namespace] = value
	m.allow(namespace, value)
}

func (m *model) allow(namespace, value string) {
	if !slices.Contains(m.may[namespace], value) {
		m.may[namespace] = append(m.may[namespace], value)
	}
}

// giveAll ends a delivery: consumers that still fail do so with value.
func (m *model) giveAll(value string) {
	clear(m.blamed)
	for namespace := range m.have {
		m.give(namespace, value)
	}
}

// rest begins a step: each namespace has what it has.
func (m *model) rest() {
	m.began, m.may, m.inOrder = maps.Clone(m.have), map[string][]string{}, false
	for namespace, value := range m.have {
		m.may[namespace] = []string{value}
	}
}

// edit is an edit of the source.
func (m *model) edit(f fleet, value string, allAtOnce bool) {
	before, broken, stable := m.underWay(), m.broken(f), m.stable
	m.value, m.paused, m.approved = value, false, false
	switch {
	case m.stages && (strings.HasPrefix(value, invalidValue) || m.rejected[value]):
		if !m.rejected[value] {
			m.rejected[value], m.newest = true, value
		}
		m.verdict = revisions.Rejected
		if before {
			m.giveAll(m.stable)
		}
	case value == m.stable:
		m.verdict = revisions.Delivered
		if m.pinned != "" && m.over != value {
			m.pinned = ""
		}
		if m.pinned == "" {
			m.giveAll(value)
		}
	default:
		m.newest = value
		m.deliver(f, value, allAtOnce || !m.stages)
		for _, namespace := range broken {
			m.allow(namespace, stable)
			if m.underWay() && !m.reached(f, namespace) {
				m.give(namespace, stable)
			}
		}
	}
}

// broken are the namespaces in which the candidate fails: those go back to the stable
// value as soon as another one supersedes it, and others keep it.
func (m *model) broken(f fleet) (namespaces []string) {
	for namespace, value := range m.have {
		if m.underWay() && value == m.value && !f.idle(namespace) && (strings.HasPrefix(value, crashValue) || m.blamed[namespace]) {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// deliver starts the delivery of value, with the first stage or with all.
func (m *model) deliver(f fleet, value string, all bool) {
	if m.pinned != "" { // what came after it was rolled back from
		m.stable = m.pinned
	}
	m.pinned, m.paused, m.approved = "", false, false
	m.inOrder, m.everywhere = !all, all
	delete(m.rejected, value)
	for namespace := range m.have {
		if m.reached(f, namespace) {
			m.give(namespace, value)
		}
	}
	fails := strings.HasPrefix(value, crashValue) || len(m.blamed) > 0
	switch {
	case !m.stages || !fails && (all || !m.approval):
		m.pass(value)
	case !fails:
		m.verdict = revisions.Delivering
	default:
		m.fail()
	}
}

func (m *model) pass(value string) {
	m.verdict, m.stable = revisions.Delivered, value
	m.paused, m.approved = false, false
	m.giveAll(value)
}

// reject ends the delivery of the source's value: everything is stable again.
func (m *model) reject() {
	m.verdict, m.rejected[m.value] = revisions.Rejected, true
	m.paused, m.approved = false, false
	m.giveAll(m.stable)
}

func (m *model) promote() {
	m.approved, m.inOrder = true, !m.everywhere
	if !m.paused {
		m.pass(m.value)
	}
}

func (m *model) resume() {
	switch {
	case m.pinned != "":
		m.pinned = ""
		m.giveAll(m.stable)
	case m.approved || !m.approval:
		m.inOrder = !m.everywhere
		m.pass(m.value)
	default:
		m.paused = false
	}
}

func (m *model) rollbackTo(value string) {
	if m.underWay() {
		m.reject()
	}
	m.pinned, m.over = value, m.value
	for namespace := range m.have {
		m.may[namespace] = []string{m.may[namespace][0], value} // not by way of the stable one
		m.have[namespace] = value
	}
}

// retry is asked of a rejected or a held value.
func (m *model) retry(f fleet) {
	switch {
	case m.verdict == revisions.Rejected:
		m.deliver(f, m.value, false)
	case strings.HasPrefix(m.value, crashValue) || len(m.blamed) > 0: // it fails again
	case m.approval:
		m.verdict, m.paused, m.approved = revisions.Delivering, false, false
	default:
		m.pass(m.value)
	}
}

// canSicken reports whether the model knows what comes of consumers that begin to fail
// in a namespace: not if that fails a candidate in a later stage.
func (m *model) canSicken(f fleet, namespace string) bool {
	return !m.underWay() || !m.everywhere || m.stageOf(f, namespace) == 0
}

// sicken is what comes of consumers that begin to fail in a namespace.
func (m *model) sicken(f fleet, namespace string) {
	if !m.underWay() || !m.reached(f, namespace) {
		return
	}
	m.blamed[namespace] = true
	m.fail()
}

// fail is what comes of a candidate that fails.
func (m *model) fail() {
	if m.hold {
		m.verdict = revisions.Held
	} else {
		m.reject()
	}
}

// assigned is what a namespace gets that has nothing that counts.
func (m *model) assigned(f fleet, namespace string) string {
	switch {
	case m.pinned != "":
		return m.pinned
	case m.underWay() && m.reached(f, namespace):
		return m.value
	default:
		return m.stable
	}
}

// arrive is a new namespace, or one that moved to another stage, if it has nothing of
// its own or what it has is behind.
func (m *model) arrive(f fleet, namespace string) {
	if m.have[namespace] == "" || m.underWay() && m.reached(f, namespace) {
		m.give(namespace, m.assigned(f, namespace))
	}
}

// setApproval changes the configuration.
func (m *model) setApproval(approval bool) {
	m.approval = approval
	if !approval && m.verdict == revisions.Delivering && !m.paused {
		m.inOrder = !m.everywhere
		m.pass(m.value)
	}
}

// setStages changes the configuration: without a delivery, everything follows the
// source.
func (m *model) setStages(stages bool) {
	if m.stages = stages; !stages && m.underWay() {
		m.pass(m.value)
	}
}

// config is the rule in the file.
func (m *model) config() string {
	source := map[object.Kind]string{object.Secret: "Secret", object.ConfigMap: "ConfigMap"}[m.kind]
	text := fmt.Sprintf("- name: %s\n  source: {kind: %s, namespace: %s, name: %s}\n", m.rule, source, deliverySource, sharedName) +
		"  validate: [{key: k, is: Regex, pattern: \"(" + goodValue + "|" + crashValue + ").*\"}]\n" +
		"  reload: {debounce: 0s, minInterval: 0s, maxRestartsPerHour: 0}\n" +
		"  sync:\n    namespaces: {include: [\"dp-*\"], exclude: [" + deliverySource + "]}\n    history: 50\n"
	if !m.stages {
		return text
	}
	text += "    delivery:\n      gate: {timeout: 5m}\n      onFailure: " + map[bool]string{true: "Hold", false: "Rollback"}[m.hold] + "\n      stages:\n" +
		fmt.Sprintf("      - {name: canary, namespaces: {selector: {matchLabels: {ring: %s}}}, soak: 100ms, approval: %t}\n", canaryRing, m.approval)
	if m.empty {
		text += "      - {name: empty, namespaces: {include: [\"dp-h-none*\"]}, soak: 0s}\n"
	}
	if m.half {
		text += "      - {name: half, namespaces: {include: [\"dp-h*\"]}, soak: 0s}\n"
	}
	return text + "      rest: {soak: 0s}\n"
}

func (m *model) String() string {
	var have []string
	for _, namespace := range slices.Sorted(maps.Keys(m.have)) {
		have = append(have, namespace+"="+m.have[namespace])
	}
	return fmt.Sprintf("%s: %s is %s, stable %s, pinned %q, paused %t, approved %t, %v", m.rule, m.value, m.verdict, m.stable, m.pinned, m.paused, m.approved, have)
}
