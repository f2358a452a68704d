// Package property holds the end-to-end tests that do one thing at random after
// the other, and compare what becomes of it with what the rules ask for.
package property

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	// stepsPerRound are done without a pause; then all must come to rest.
	stepsPerRound = 30
	defaultSteps  = 400
	// undisturbed is for how long nothing is written once all is at rest.
	undisturbed = time.Second
)

// Invariants 1, 2, 4 and 5: whatever is done to sources, namespaces, clones,
// objects of others and rules, and whenever Headwater is killed meanwhile, the
// cluster comes to rest as the rules ask for, and not a write later.
//
// HEADWATER_SEED plays the same steps again, HEADWATER_STEPS says how many.
func TestWhateverIsDoneTheClusterComesToWhatTheRulesAskFor(t *testing.T) {
	seed, steps := seedAndSteps(t, defaultSteps)
	w := newWorld(t, seed)
	rounds := max(2, int(steps)/stepsPerRound)
	for round := range rounds {
		w.gentle = round < rounds/3
		w.begin()
		t.Logf("round %d, gentle: %t", round, w.gentle)
		for range stepsPerRound {
			w.step()
		}
		w.comesToRest()
	}
	w.restart()
	w.untouched(w.Cluster.Mark())
}

// step does one thing at random.
func (w *world) step() {
	w.choose([]choice{
		{7, w.putSource},
		{2, w.deleteSource},
		{10, w.touch},
		{3, w.relabelNamespace},
		{1, w.deleteNamespace},
		{2, w.createNamespace},
		{6, w.changeRules},
		{1, w.restart},
		{2, w.ready},
	})
}

// restart kills Headwater, wherever it is, and starts it again.
func (w *world) restart() {
	w.Log("kill and start")
	if w.headwater != nil {
		w.headwater.Kill()
	}
	o := w.Options(w.file())
	o.Args = []string{lab.Alone} // a lease would outlive the killed
	w.headwater = w.Launch(o)
}

func (w *world) ready() {
	w.Log("wait until ready")
	require.NoError(w, w.headwater.Ready(w.Context()))
}

// comesToRest waits until the cluster is as the rules ask for, and stays so
// without a write.
func (w *world) comesToRest() {
	w.ready()
	w.Eventually(func(ctx context.Context) error {
		if err := w.headwater.Idle(ctx); err != nil {
			return err
		}
		if err := w.judge(ctx); err != nil {
			return err
		}
		waiting, err := w.headwater.Metric(ctx, "headwater_sync_clones", map[string]string{"state": "removing"})
		if err != nil || waiting > 0 { // those of a rule that is gone wait for longest
			return errors.Join(err, lab.ErrorIf(waiting > 0, "%v clones are to be deleted", waiting))
		}
		return lab.Holds(ctx, undisturbed, w.nothingWritten(w.Cluster.Mark()))
	})
	require.NoError(w, w.judge(w.Context()))
	for _, r := range w.objectWrites(w.since) {
		require.Contains(w, targetNamespaces, r.Namespace, "%+v", r)
		if w.gentle && r.Code < 300 {
			require.NotEqual(w, "delete", r.Verb, "nothing calls for a removal: %+v", r)
		}
	}
}

// untouched waits until a Headwater that was started has looked at everything,
// and checks that it wrote nothing since mark.
func (w *world) untouched(mark cluster.Mark) {
	w.ready()
	require.NoError(w, w.headwater.Idle(w.Context()))
	w.Holds(undisturbed, w.nothingWritten(mark))
}

// objectWrites are attempts to write Secrets and ConfigMaps, refused ones too.
func (w *world) objectWrites(mark cluster.Mark) []cluster.Request {
	var writes []cluster.Request
	for _, r := range w.Writes(mark) {
		clonable := r.Resource == object.Secret.Resource() || r.Resource == object.ConfigMap.Resource()
		if clonable && r.Namespace != lab.Namespace {
			writes = append(writes, r)
		}
	}
	return writes
}

func (w *world) nothingWritten(mark cluster.Mark) func(context.Context) error {
	return func(context.Context) error {
		if writes := w.objectWrites(mark); len(writes) > 0 {
			return fmt.Errorf("%d writes though all is at rest, the first %+v", len(writes), writes[0])
		}
		return nil
	}
}
