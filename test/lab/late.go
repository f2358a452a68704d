package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
)

// Inconclusive ends the test without a verdict. Call it only where the test measured that
// the machine was too slow for one. What failed before stays failed. `make test` prints
// these tests at its end: test/gotest knows them by the first word.
func (e *Env) Inconclusive(format string, args ...any) {
	e.Helper()
	e.Skip("INCONCLUSIVE: " + strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

// measureEvery is how often Delays measures.
const measureEvery = 50 * time.Millisecond

// Delays records how long writes take to reach a watch of the test. On a slow machine,
// Headwater is as late as that.
type Delays struct {
	mu sync.Mutex
	// probes are those that were seen, in order. pending is when the next one was due.
	probes  []probe
	pending time.Time
}

// probe is one write: when it was due, and when the watch showed it.
type probe struct{ due, seen time.Time }

// Delays measures from now until the test ends. It renews a Lease, which Headwater ignores.
func (e *Env) Delays() *Delays {
	e.Helper()
	leases := e.Admin.CoordinationV1().Leases(metav1.NamespaceDefault)
	created, err := leases.Create(e.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{GenerateName: "delays-"}}, metav1.CreateOptions{})
	require.NoError(e, err)
	ctx, cancel := context.WithCancel(e.Context())
	d := &Delays{pending: time.Now()}
	var measuring sync.WaitGroup
	measuring.Go(func() {
		for ctx.Err() == nil {
			d.measure(ctx, leases, created.Name)
			<-time.After(measureEvery) // the API server may be away
		}
	})
	e.Cleanup(func() {
		cancel()
		measuring.Wait()
		_ = leases.Delete(context.WithoutCancel(ctx), created.Name, metav1.DeleteOptions{})
	})
	return d
}

// measure probes until ctx ends or the watch does. A probe that fails is still pending then.
func (d *Delays) measure(ctx context.Context, leases coordinationclient.LeaseInterface, name string) {
	watching, err := leases.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return
	}
	defer watching.Stop()
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		due := d.due()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"due":%q}}}`, due.Format(time.RFC3339Nano))
		patched, err := leases.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil || !appears(watching, patched.ResourceVersion) {
			return
		}
		d.note(due)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// appears waits for that version of the Lease. It is false if the watch ends.
func appears(watching watch.Interface, version string) bool {
	for event := range watching.ResultChan() {
		if lease, ok := event.Object.(*coordinationv1.Lease); ok && lease.ResourceVersion == version {
			return true
		}
	}
	return false
}

func (d *Delays) due() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending
}

func (d *Delays) note(due time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.probes = append(d.probes, probe{due, now})
	d.pending = now.Add(measureEvery)
}

// Longest returns the longest delay of a write that was under way between from and to.
func (d *Delays) Longest(from, to time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	longest := time.Duration(0)
	for _, p := range append(d.probes[:len(d.probes):len(d.probes)], probe{d.pending, time.Now()}) {
		if p.due.Before(to) && p.seen.After(from) {
			longest = max(longest, p.seen.Sub(p.due))
		}
	}
	return longest
}

// Together waits until Headwater has written to that many consumers of a namespace. It ends the
// test without a verdict if so much time passed between two of them, on a machine that was late,
// that Headwater may report them apart: it reports after 3 s without news.
func (e *Env) Together(namespace string, mark cluster.Mark, consumers int, delays *Delays) {
	e.Helper()
	written := map[string]time.Time{} // first
	e.Eventually(func(context.Context) error {
		for _, write := range e.Writes(mark) {
			name := write.Resource + "/" + write.Name
			_, again := written[name] // as a refresh is that is confirmed
			if !again && write.Namespace == namespace && write.Code < 300 && (write.Resource == "deployments" || write.Resource == "pods") {
				written[name] = write.Done
			}
		}
		return ErrorIf(len(written) < consumers, "%d of %d were written to", len(written), consumers)
	})
	times := slices.SortedFunc(maps.Values(written), time.Time.Compare)
	for i, at := range times[1:] {
		apart, late := at.Sub(times[i]), delays.Longest(times[i], at)
		if apart > 2*time.Second && late > time.Second/2 {
			e.Inconclusive("two consumers were written to %s apart, and writes were seen as late as %s", apart, late)
		}
	}
}
