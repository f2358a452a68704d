package track

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// limited are rollouts under these limits. woken has the workloads that were
// woken, in their order.
func limited(all, perNamespace int) (r *Rollouts, woken *[]kinds.Key, clock *time.Time) {
	settings := spec.Settings{MaxConcurrentRollouts: &all, MaxConcurrentRolloutsPerNamespace: &perNamespace}
	settings.Default()
	woken, clock = &[]kinds.Key{}, new(reloadtest.Birth)
	wake := func(k kinds.Key) { *woken = append(*woken, k) }
	return NewRollouts(live.New(settings.Compile()), wake, func() time.Time { return *clock }), woken, clock
}

func TestOnlySoManyRolloutsAreUnderWay(t *testing.T) {
	r, woken, clock := limited(2, 0)
	a, b, c := reloadtest.InNamespace("x", "a"), reloadtest.InNamespace("y", "b"), reloadtest.InNamespace("z", "c")
	require.True(t, r.Admit(a, 1, false))
	require.True(t, r.Admit(b, 1, false))
	require.False(t, r.Admit(c, 1, false))
	r.Began(a, "10")
	r.Began(b, "11")

	r.Observe(a, time.Time{}, "9")
	require.Empty(t, *woken, "a cache that is behind says nothing")
	r.Observe(a, clock.Add(time.Minute), "12")
	require.Empty(t, *woken, "it is still rolling out")
	require.True(t, r.Admit(a, 1, false), "what counts already may be restarted again")
	r.Began(a, "13")

	r.Observe(a, time.Time{}, "14")
	require.Equal(t, []kinds.Key{c}, *woken)
	require.False(t, r.Admit(reloadtest.InNamespace("w", "d"), 1, false), "the place is kept for the one that was woken")
	require.True(t, r.Admit(c, 1, false))
}

func TestWhatFailsGoesBeforeWhatIsSmall(t *testing.T) {
	r, woken, _ := limited(1, 0)
	first := reloadtest.InNamespace("x", "first")
	require.True(t, r.Admit(first, 9, false))
	r.Began(first, "10")
	require.False(t, r.Admit(reloadtest.InNamespace("x", "small"), 1, false))
	require.False(t, r.Admit(reloadtest.InNamespace("y", "failing"), 7, true))
	r.Gone(first)
	require.Equal(t, []kinds.Key{reloadtest.InNamespace("y", "failing")}, *woken)
}

func TestTheSmallestWorkloadIsNext(t *testing.T) {
	r, woken, _ := limited(1, 0)
	first := reloadtest.InNamespace("x", "first")
	require.True(t, r.Admit(first, 9, false))
	r.Began(first, "10")
	for name, replicas := range map[string]int32{"large": 7, "small": 2, "least": 1, "like-small": 2} {
		require.False(t, r.Admit(reloadtest.InNamespace("x", name), replicas, false))
	}
	r.Leave(reloadtest.InNamespace("x", "least")) // it need not be restarted any more
	r.Gone(first)
	for _, want := range []string{"like-small", "small", "large"} {
		next := reloadtest.InNamespace("x", want)
		require.Equal(t, next, (*woken)[len(*woken)-1])
		require.True(t, r.Admit(next, 1, false))
		r.Began(next, "20")
		r.Observe(next, time.Time{}, "21")
	}
	require.Len(t, *woken, 3)
	require.Empty(t, r.running)
	require.Empty(t, r.inNamespace)
	require.Empty(t, r.waiting)
}

func TestANamespaceHasALimitOfItsOwn(t *testing.T) {
	r, woken, _ := limited(3, 1)
	require.True(t, r.Admit(reloadtest.InNamespace("x", "a"), 1, false))
	require.False(t, r.Admit(reloadtest.InNamespace("x", "b"), 1, false))
	require.True(t, r.Admit(reloadtest.InNamespace("y", "c"), 9, false), "another namespace does not wait")
	r.Leave(reloadtest.InNamespace("y", "c"))
	require.Empty(t, *woken, "a place in another namespace is of no use")
	r.Leave(reloadtest.InNamespace("x", "a"))
	require.Equal(t, []kinds.Key{reloadtest.InNamespace("x", "b")}, *woken)
}

func TestAPlaceThatIsNotUsedIsPassedOn(t *testing.T) {
	r, woken, _ := limited(1, 0)
	a, b, c := reloadtest.InNamespace("x", "a"), reloadtest.InNamespace("x", "b"), reloadtest.InNamespace("x", "c")
	require.True(t, r.Admit(a, 1, false))
	require.False(t, r.Admit(b, 1, false))
	require.False(t, r.Admit(c, 2, false))
	r.Leave(a) // the write failed
	r.Leave(b) // it was woken, and had nothing to do
	require.Equal(t, []kinds.Key{b, c}, *woken)
}

// What says that a rollout of Headwater's is under way, its owner can write, too.
func TestNobodyTakesPlacesByWhatTheyWriteOnTheirWorkloads(t *testing.T) {
	for sentence, test := range map[string]struct {
		until   time.Time
		leading bool
		counted int
	}{
		"begun an hour ahead":                           {reloadtest.Birth.Add(time.Hour + workload.RolloutTimeout), false, 0},
		"begun long ago":                                {reloadtest.Birth.Add(-time.Second), false, 0},
		"begun before this leader, as many as can be":   {reloadtest.Birth.Add(time.Minute), false, 10},
		"begun under this leader, who did not begin it": {reloadtest.Birth.Add(time.Minute), true, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			r, _, _ := limited(50, 10)
			if test.leading {
				r.Lead()
			}
			for i := range 50 {
				r.Observe(reloadtest.InNamespace("forging", fmt.Sprint(i)), test.until, "10")
			}
			require.Len(t, r.running, test.counted)
			require.True(t, r.Admit(reloadtest.InNamespace("other", "web"), 3, false))
		})
	}
}

func TestNobodyKeepsAPlaceByWhatTheyWriteOnTheirWorkload(t *testing.T) {
	r, woken, clock := limited(1, 0)
	r.Lead()
	a, b := reloadtest.InNamespace("x", "a"), reloadtest.InNamespace("x", "b")
	require.True(t, r.Admit(a, 1, false))
	r.Began(a, "10")
	require.False(t, r.Admit(b, 1, false))
	*clock = clock.Add(workload.RolloutTimeout - time.Second)
	r.Observe(a, clock.Add(workload.RolloutTimeout), "11") // as if it began just now
	*clock = clock.Add(time.Second)
	r.Expire()
	require.Equal(t, []kinds.Key{b}, *woken)
}

func TestALargeWorkloadDoesNotWaitForEver(t *testing.T) {
	const each = 30 * time.Second // of a small rollout
	r, woken, clock := limited(1, 0)
	large, running := reloadtest.InNamespace("x", "large"), reloadtest.InNamespace("x", "small")
	require.True(t, r.Admit(running, 1, false))
	require.False(t, r.Admit(large, 100, false))
	for i := 0; len(*woken) == 0 || (*woken)[len(*woken)-1] != large; i++ {
		require.LessOrEqual(t, clock.Sub(reloadtest.Birth), workload.RolloutTimeout)
		small := reloadtest.InNamespace("x", fmt.Sprint("small", i))
		require.False(t, r.Admit(small, 1, false))
		require.False(t, r.Admit(large, 100, false), "asking again is no new beginning")
		*clock = clock.Add(each)
		r.Gone(running)
		running = (*woken)[len(*woken)-1]
	}
}

func TestARolloutThatNeverEndsDoesNotCountForEver(t *testing.T) {
	r, woken, clock := limited(1, 0)
	a, b := reloadtest.InNamespace("x", "a"), reloadtest.InNamespace("x", "b")
	r.Observe(a, clock.Add(workload.RolloutTimeout), "10") // as a new leader sees it
	require.False(t, r.Admit(b, 1, false))
	*clock = clock.Add(workload.RolloutTimeout - time.Second)
	r.Expire()
	require.Empty(t, *woken)
	*clock = clock.Add(time.Second)
	r.Expire()
	require.Equal(t, []kinds.Key{b}, *woken)
}

func TestNoLimitIsNoLimit(t *testing.T) {
	r, woken, _ := limited(0, 0)
	for i := range 1000 {
		require.True(t, r.Admit(reloadtest.InNamespace("x", string(rune('a'+i))), 1, false))
	}
	require.Empty(t, *woken)
}

func BenchmarkARestartIsAdmitted(b *testing.B) {
	r, _, _ := limited(0, 0)
	for i := range b.N {
		k := reloadtest.InNamespace("x", string(rune(i)))
		r.Admit(k, 1, false)
		r.Began(k, "10")
		r.Observe(k, time.Time{}, "11")
	}
}
