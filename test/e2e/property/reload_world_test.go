package property

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// A small world, so that everything meets everything.
const (
	reloadSource = "rel-src"
	sharedName   = "shared" // cloned, and governed by a rule
	ownName      = "own"    // the namespace's own
	subPathKey   = "file"   // consumed as a file that is never rewritten
	// refusedName is a workload that somebody's policy refuses at times.
	refusedName = "refused"
	// mountingName is a workload that only mounts, whatever the dice say, so that
	// there is always somebody to refresh. Nobody changes it.
	mountingName = "mounting"
)

var (
	reloadTargets = []string{"rel-a", "rel-b"}
	workloadNames = []string{"one", "two", "three", "four", "five", "six"}
	dataKeys      = []string{"k1", "k2", subPathKey}
)

// reloadRules leave nothing to wait for but a short debounce, and let no more
// than two workloads roll out at a time.
const (
	reloadSections = "reload: {minInterval: 0s, maxRestartsPerHour: 0, maxConcurrentRollouts: 2, confirmRefreshAfter: 200ms}\n"
	reloadRules    = `
- name: secret
  source: {kind: Secret, namespace: ` + reloadSource + `, name: ` + sharedName + `}
  sync: {namespaces: {include: [rel-a, rel-b]}}
  reload: {debounce: 200ms, minInterval: 0s, maxRestartsPerHour: 0}
- name: config
  source: {kind: ConfigMap, namespace: ` + reloadSource + `, name: ` + sharedName + `}
  sync: {namespaces: {include: [rel-a, rel-b]}}
  reload: {debounce: 0s, minInterval: 0s, maxRestartsPerHour: 0}
`
)

// reloadWorld is the cluster, and what the test alone knows of it.
type reloadWorld struct {
	*env
	dice
	*past

	headwater *lab.Headwater
	// next is from where the past is to be read on.
	next int64
	// made counts workloads, so that each has an app label of its own.
	made int
	// refused is refusedName while nobody may change it, until allowed is called.
	refused string
	allowed func()
}

func newReloadWorld(t *testing.T, seed uint64) *reloadWorld {
	t.Helper()
	w := &reloadWorld{env: &env{lab.On(t, cluster.ForTest(t, cluster.Options{}))}, dice: newDice(seed), past: newPast(0), next: 1}
	w.Sections = reloadSections
	w.Node("rel-node")
	for _, namespace := range append([]string{reloadSource}, reloadTargets...) {
		w.Namespace(namespace)
	}
	w.PlayKubelet("status.phase=Pending,spec.nodeName=rel-node", func(context.Context, *corev1.Pod) (lab.Health, error) { return lab.Runs, nil })
	for _, kind := range object.Kinds {
		w.putData(object.Ref{Kind: kind, Namespace: reloadSource, Name: sharedName}, nil)
		for _, namespace := range reloadTargets {
			w.putData(object.Ref{Kind: kind, Namespace: namespace, Name: ownName}, nil)
		}
	}
	w.create(reloadTargets[0], refusedName)
	w.createOf(reloadTargets[0], mountingName, 1, lab.ByVolume(sharedName), "")
	for _, namespace := range reloadTargets {
		for _, name := range workloadNames {
			w.create(namespace, name)
		}
	}
	w.start()
	return w
}

// start starts Headwater, which may have been killed.
func (w *reloadWorld) start() {
	w.Log("start")
	require.NoError(w, w.remember(w.Context()))
	w.begun = w.next
	o := w.Options(reloadRules)
	o.Args = []string{lab.Alone} // a lease would outlive the killed
	w.headwater = w.Launch(o)
}

// remember reads on in the past.
func (w *reloadWorld) remember(ctx context.Context) error {
	editions, next, err := w.Cluster.History(ctx, w.next, "secrets", "configmaps", "deployments", "pods")
	if err != nil {
		return err
	}
	for _, edition := range editions {
		if slices.Contains(reloadTargets, edition.Namespace) {
			w.add(edition)
		}
	}
	w.next = next
	if len(w.faults) > 0 {
		return lab.Permanent(errors.Join(w.faults...))
	}
	return nil
}

// comesToRest waits until all that runs is current and nothing is written any
// more. A rollout may begin only after the first look, so it looks again.
func (w *reloadWorld) comesToRest() {
	if w.headwater == nil {
		w.start()
	}
	require.NoError(w, w.headwater.Ready(w.Context()))
	w.Eventually(func(ctx context.Context) error {
		if err := w.CaughtUp(ctx, w.headwater); err != nil { // its watches come back some time after the API server
			return err
		}
		if err := w.isCurrent(ctx); err != nil {
			return err
		}
		if err := lab.Holds(ctx, undisturbed, w.nothingChanged(w.Cluster.Mark())); err != nil {
			return err
		}
		return w.isCurrent(ctx)
	})
	w.rests(w.next-1, w.refused)
}

// isCurrent reads on in the past, and judges what there is now.
func (w *reloadWorld) isCurrent(ctx context.Context) error {
	if err := w.remember(ctx); err != nil {
		return err
	}
	return w.judge(w.refused)
}

// nothingChanged is noWrites but for attempts that were refused, and for writes to
// the workloads in except.
func (w *reloadWorld) nothingChanged(mark cluster.Mark, except ...string) func(context.Context) error {
	return func(context.Context) error {
		for _, write := range w.Writes(mark) {
			excepted := write.Resource == "deployments" && slices.Contains(except, write.Namespace+"/"+write.Name)
			if write.Code < 300 && !excepted {
				return fmt.Errorf("a write though all is at rest: %+v", write)
			}
		}
		return nil
	}
}

// spec is a pod of up to three uses at random.
func (w *reloadWorld) spec(namespace string) corev1.PodSpec {
	spec := lab.ByNothing()
	for range 1 + w.IntN(3) {
		w.use(namespace).consume(&spec)
	}
	return spec
}

func (w *reloadWorld) use(namespace string) use {
	u := use{
		ref:      object.Ref{Kind: pick(w, object.Kinds), Namespace: namespace, Name: pick(w, []string{sharedName, sharedName, ownName})},
		optional: w.oneIn(3),
	}
	switch w.IntN(5) {
	case 0: // all in the environment
	case 1:
		u.files = true
	default:
		u.key = pick(w, dataKeys)
	}
	return u
}
