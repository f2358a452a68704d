package property

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
)

const (
	defaultDeliverySteps = 200
	// slower is how many steps of the other tests take as long as one of these, after
	// which all must come to rest.
	slower = 20
	// stormEvery is after how many steps things happen too fast to tell the order.
	stormEvery = 25
)

// Invariants D1 to D6 and D10: whatever is done to sources, namespaces, clones, consumers and
// rules, and whatever is asked of a delivery, every namespace comes to the revision that
// the design says, and none ever has another one on the way.
//
// HEADWATER_SEED plays the same steps again, HEADWATER_STEPS says how many.
func TestWhateverIsDoneEveryNamespaceHasTheRevisionOfItsStage(t *testing.T) {
	t.Parallel() // on a cluster of its own
	seed, steps := seedAndSteps(t, defaultDeliverySteps)
	w := newDeliveryWorld(t, seed)
	w.rests()
	for step := range steps / slower {
		t.Logf("step %d", step)
		w.step()
		w.rests()
		if (step+1)%stormEvery == 0 {
			w.storm()
		}
	}
	w.storm()
}

// cloneValue is a value that a clone had from a revision of etcd on.
type cloneValue struct {
	since     int64
	namespace string
	value     string
}

// checkHistory checks every value that a clone had since the last rest, by etcd's
// history: invariant D1.
func (w *deliveryWorld) checkHistory() {
	editions := w.history()
	for _, m := range w.models {
		values := valuesOf(m, editions)
		for _, one := range values {
			if w.rings[one.namespace] != "" {
				require.Contains(w, m.may[one.namespace], one.value, "%s, of %s", one.namespace, m)
			}
		}
		require.NoError(w, w.inOrder(m, values))
	}
}

// history returns what was written since it was called last, and keeps since when pods
// are ready.
func (w *deliveryWorld) history() []cluster.Edition {
	editions, next, err := w.Cluster.History(w.Context(), w.next, "secrets", "configmaps", "pods")
	require.NoError(w, err)
	w.next = next
	for _, edition := range editions {
		pod, isPod := edition.Object.(*corev1.Pod)
		if !isPod || !slices.ContainsFunc(pod.Status.Conditions, isReady) {
			continue
		}
		w.mu.Lock()
		one := run{consumer: pod.Labels["app"], namespace: pod.Namespace, value: w.read[pod.UID][pod.Labels["app"]]}
		if _, known := w.ran[one]; !known {
			w.ran[one] = edition.Revision
		}
		w.mu.Unlock()
	}
	return editions
}

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// ranSince returns since when, by namespace, a pod that read value was ready.
func (w *deliveryWorld) ranSince(consumer, value string) map[string]int64 {
	since := map[string]int64{}
	for one, revision := range w.ran {
		if one.consumer == consumer && one.value == value {
			since[one.namespace] = revision
		}
	}
	return since
}

// valuesOf returns the values that the clones of m had, in order.
func valuesOf(m *model, editions []cluster.Edition) (values []cloneValue) {
	for _, edition := range editions {
		if edition.Name != sharedName || edition.Namespace == deliverySource || edition.Resource != m.kind.Resource() {
			continue
		}
		one := cloneValue{since: edition.Revision, namespace: edition.Namespace}
		switch o := edition.Object.(type) {
		case *corev1.Secret:
			one.value = string(o.Data[valueKey])
		case *corev1.ConfigMap:
			one.value = o.Data[valueKey]
		default:
			continue // deleted
		}
		values = append(values, one)
	}
	return values
}

// inOrder checks that the source's value came to each stage only after every namespace
// of the stages before had it, and a pod that read it there was ready: what the test
// itself gave its pods to read is the evidence, not what Headwater says of it.
func (w *deliveryWorld) inOrder(m *model, values []cloneValue) error {
	if !m.inOrder {
		return nil
	}
	first, ran := firstOf(values, m.value), w.ranSince(m.consumer(), m.value)
	for _, later := range steady {
		for _, earlier := range steady {
			at, came := first[later]
			before, had := first[earlier]
			if came && m.stageOf(w, earlier) < m.stageOf(w, later) && m.began[earlier] != m.value && (!had || before > at) {
				return fmt.Errorf("%s had %s before %s", later, m.value, earlier)
			}
			since, proven := ran[earlier]
			if came && m.stageOf(w, earlier) < m.stageOf(w, later) && (!proven || since > at) {
				return fmt.Errorf("%s had %s before a pod in %s ran it", later, m.value, earlier)
			}
		}
	}
	return nil
}

// firstOf returns since when each namespace had value for the first time.
func firstOf(values []cloneValue, value string) map[string]int64 {
	first := map[string]int64{}
	for _, one := range slices.Backward(values) {
		if one.value == value {
			first[one.namespace] = one.since
		}
	}
	return first
}
