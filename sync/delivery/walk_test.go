package delivery_test

import (
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/test/seed"
)

// The walk visits every interleaving of a small cluster: a canary and another namespace
// with a consumer each, three contents of which one is bad, and two processes that act on
// caches of their own, each of which lags as it likes, may both believe that they lead,
// crash and start again. Somebody edits the source, breaks a consumer, scales it to zero,
// deletes a revision, and renames the rule or its stage.
//
// It assumes what the gate cannot know: a bad value shows within a tick of the clock, which
// is the soak time, and a process whose caches lag for longer has not looked.

// walkDepth is how many steps every interleaving is followed, from each state of a
// delivery that one process does alone: of one in a cluster that is as usual one more.
// HEADWATER_DEPTH says otherwise.
const walkDepth = 3

// next calls do for every state that can come after s.
func (w walk) next(s *world, do func(after *world)) {
	try := func(change func(s *world)) {
		after := *s
		change(&after)
		if after != *s {
			do(&after)
		}
	}
	for content := int8(1); content <= badContent; content++ {
		if content != s.source && s.edits < mostEdits {
			try(func(s *world) { s.source, s.edits = content, s.edits+1 })
		}
	}
	for i := range s.actors {
		w.steps(try, i)
	}
	for ns := range 2 {
		try(func(s *world) { w.run(s, ns) })
	}
	try(w.tick)
	if s.others < mostOthers {
		w.disturbances(s, func(change func(s *world)) { try(func(s *world) { s.others++; change(s) }) })
	}
}

// steps are those of one process. Its watches deliver in no order.
func (w walk) steps(try func(func(*world)), i int) {
	try(func(s *world) { s.actors[i].cached.source = s.source })
	try(func(s *world) { s.actors[i].cached.revisions = s.revisions })
	try(func(s *world) { s.actors[i].cached.clones = s.clones })
	try(func(s *world) { s.actors[i].cached.pods = s.pods })
	try(func(s *world) { w.sync(s, &s.actors[i]) })
	try(func(s *world) { w.look(s, &s.actors[i]) })
	try(func(s *world) { w.judge(s, &s.actors[i]) })
	try(func(s *world) {
		if s.names < 3 {
			s.names++
			s.actors[i] = actor{name: s.names, cached: s.cluster}
		}
	})
	for ns := range 2 {
		try(func(s *world) { w.write(s, &s.actors[i], ns) })
	}
}

// disturbances are what people do to the cluster.
func (w walk) disturbances(s *world, try func(func(*world))) {
	for ns := range int8(2) {
		try(func(s *world) { w.breaks(s, ns) })
		try(func(s *world) { w.scales(s, ns) })
	}
	for at := range s.revisions {
		if s.revisions[at].version > 0 {
			try(func(s *world) { s.revisions[at] = record{} })
		}
	}
	try(func(s *world) { s.revisions = [mostRevisions]record{} })
	try(func(s *world) { s.rule = 1 })
	try(func(s *world) { s.stages = 1 })
}

// breaks lets a consumer fail, whatever it reads.
func (w walk) breaks(s *world, ns int8) {
	s.pods[ns].broken, s.pods[ns].phase, s.odd = true, crashed, s.odd.set(ns, true)
}

// scales scales a consumer to zero, or back.
func (w walk) scales(s *world, ns int8) {
	s.pods[ns].idle, s.odd = !s.pods[ns].idle, s.odd.set(ns, true)
	if !s.pods[ns].idle {
		s.pods[ns].content, s.pods[ns].phase = s.clones[ns].content, starting
	}
}

// undisturbed returns the states of a delivery of content by the first process alone, after
// something was done to the cluster.
func (w walk) undisturbed(content int8, prepare func(*world)) (all []world) {
	s := world{names: 2}
	s.source, s.version = 1, 1
	s.revisions[0] = record{version: 1, uid: 1, content: 1, verdict: revisions.Delivered}
	for ns := range 2 {
		s.clones[ns], s.pods[ns], s.ran[ns], s.held[ns] = clone{1, 1, 1}, pod{content: 1, phase: ready}, 2, 2
	}
	prepare(&s)
	for i := range s.actors {
		s.actors[i] = actor{name: int8(i + 1), cached: s.cluster}
	}
	all = append(all, s)
	s.source, s.edits = content, 1
	for range 12 {
		a := &s.actors[0]
		for _, step := range []func(){
			func() { w.sync(&s, a) }, func() { w.look(&s, a) }, func() { w.judge(&s, a) }, func() { w.write(&s, a, 0); w.write(&s, a, 1) },
			func() { w.run(&s, 0); w.run(&s, 1) }, func() { w.tick(&s) },
		} {
			step()
			all = append(all, s)
			a.cached = s.cluster
			all = append(all, s)
		}
	}
	return all
}

// usual is a cluster to which nothing was done.
func usual(*world) {}

// unusual are clusters in which a consumer gives no evidence.
func (w walk) unusual() []func(*world) {
	return []func(*world){
		func(s *world) { w.breaks(s, canaryNS) },
		func(s *world) { w.scales(s, canaryNS) },
		func(s *world) { w.scales(s, restNS) },
	}
}

// deliveries returns the states of a good and a bad delivery in each of these clusters.
func (w walk) deliveries(prepares ...func(*world)) (all []world) {
	for _, prepare := range prepares {
		for _, content := range []int8{2, badContent} {
			all = append(all, w.undisturbed(content, prepare)...)
		}
	}
	return all
}

func newWalk(t *testing.T) walk {
	t.Helper()
	w := walk{known: map[record]*revisions.Revision{}}
	for at, first := range []string{"canary", "early"} {
		w.in[at] = stagesOf(t, func(d *stages.Delivery) {
			d.Stages = d.Stages[:1]
			d.Stages[0].Name = first
			d.Stages[0].Soak, d.Rest.Soak = &metav1.Duration{Duration: soakTime}, &metav1.Duration{Duration: soakTime}
		})
	}
	return w
}

// sound checks D10 to D12 in one state.
func sound(t *testing.T, before, after *world) {
	t.Helper()
	if after.clones[restNS].content == badContent {
		require.Fail(t, "the bad revision passed the canary", "%+v\n%+v", before, after)
	}
	if after.wrong != "" {
		require.Fail(t, after.wrong, "%+v\n%+v", before, after)
	}
}

// every visits all that comes within so many steps after front, and returns how many
// states that are.
func (w walk) every(t *testing.T, front []world, steps int) int {
	t.Helper()
	seed, visited := maphash.MakeSeed(), map[uint64]bool{}
	isNew := func(s *world) bool {
		key := maphash.Comparable(seed, *s)
		known := visited[key]
		visited[key] = true
		return !known
	}
	front = slices.DeleteFunc(front, func(s world) bool { return !isNew(&s) })
	for step := range steps {
		var following []world
		for i := range front {
			w.next(&front[i], func(after *world) {
				sound(t, &front[i], after)
				if isNew(after) && step < steps-1 {
					following = append(following, *after)
				}
			})
		}
		front = following
	}
	return len(visited)
}

// Invariants D10, D11 and D12, in every state of a small cluster.
func TestNoInterleavingLetsABadRevisionPass(t *testing.T) {
	w := newWalk(t)
	good := w.undisturbed(2, usual)
	require.True(t, slices.ContainsFunc(good, func(s world) bool { return s.clones[restNS].content == 2 }), "a good revision is delivered")
	depth := int(seed.Number(t, "HEADWATER_DEPTH", walkDepth))
	t.Logf("%d states, every interleaving of %d steps", w.every(t, w.deliveries(usual), depth+1), depth+1)
	t.Logf("%d states, every interleaving of %d steps where a consumer gives no evidence", w.every(t, w.deliveries(w.unusual()...), depth), depth)
}

// Long walks at random reach what lies behind the interleavings.
func TestNoLongWalkLetsABadRevisionPass(t *testing.T) {
	const steps = 300
	runs := seed.Number(t, "HEADWATER_WALKS", 500)
	w := newWalk(t)
	dice, delivered, begins := rand.New(rand.NewPCG(seed.Or(t, 1), 2)), 0, w.deliveries(append(w.unusual(), usual)...)
	for run := range runs {
		s := begins[dice.IntN(len(begins))]
		if run%2 == 0 {
			s = w.undisturbed(2, usual)[0]
		}
		for range steps {
			var all []world
			w.next(&s, func(after *world) { all = append(all, *after) })
			if len(all) == 0 {
				break // everything is as it is to be
			}
			before := s
			s = all[dice.IntN(len(all))]
			sound(t, &before, &s)
		}
		if s.clones[restNS].content == 2 {
			delivered++
		}
	}
	require.Positive(t, delivered)
	t.Logf("%d walks of %d steps, of which %d delivered a good revision", runs, steps, delivered)
}
