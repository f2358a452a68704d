package sync

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/counts"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Whatever happens, the counts are those of a survey of all clones, and the waiting
// times those of a count of all. HEADWATER_SEED repeats a run.
func TestCountsAreThoseOfASurvey(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("HEADWATER_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("HEADWATER_SEED=%d", seed)
	w := newCountsWorld(t, seed)
	unseen := slices.DeleteFunc(slices.Clone(survey.Statuses), func(status survey.Status) bool {
		return status == survey.Drifting || status == survey.Refused // rare here
	})
	var steps []string
	for len(steps) < 400 || len(unseen) > 0 {
		require.Less(t, len(steps), 10_000, "no clone was %s", unseen)
		steps = append(steps, w.step())
		if problem := w.settle(); problem != "" {
			t.Fatalf("HEADWATER_SEED=%d: after %q: %s", seed, steps[max(0, len(steps)-5):], problem)
		}
		for key := range w.view.controller.counts.Latest().Clones {
			unseen = slices.DeleteFunc(unseen, func(status survey.Status) bool { return status == key.Status })
		}
	}
}

// settle waits until the counts are right. It returns what is wrong with them if they
// stay wrong.
func (w *countsWorld) settle() (problem string) {
	for deadline := time.After(5 * time.Second); ; {
		if problem = w.difference(); problem == "" {
			return ""
		}
		select {
		case <-deadline:
			return problem
		case <-time.After(time.Millisecond):
		}
	}
}

func (w *countsWorld) difference() string {
	c := w.view.controller
	counted := c.counts.Latest()
	surveyed := map[counts.Key]int{}
	w.view.Survey(func(f survey.CloneStatus) {
		surveyed[counts.Key{Rule: c.RuleLabel(f.Rule), Status: f.Status, Reason: f.Decision.Reason}]++
	})
	if !reflect.DeepEqual(counted.Clones, surveyed) {
		return fmt.Sprintf("counted %v, surveyed %v", counted.Clones, surveyed)
	}
	w.full.AllChanged()
	if oldest := w.full.Latest().Oldest; !reflect.DeepEqual(counted.Oldest, oldest) {
		return fmt.Sprintf("counted %v, in full %v", counted.Oldest, oldest)
	}
	return ""
}

// A handler may run later than a reader of the cache.
func TestCountsOfARuleAreAsNewAsItsSources(t *testing.T) {
	w := newCountsWorld(t, 1)
	c, rule := w.view.controller, w.rules[0]
	w.put(w.metadata, "namespaces", "", &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "team-0", ResourceVersion: w.nextVersion()},
	})
	w.put(w.typed(), "secrets", "platform", &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "source-1", ResourceVersion: w.nextVersion()},
		Data:       map[string][]byte{"password": []byte("c4n4ry")},
	})
	cached := func(exists bool) func() bool {
		return func() bool {
			source, _ := c.Caches.Sources.Get(rule.Source.Ref())
			_, found := c.Caches.Namespaces.Get("", "team-0")
			return found && (source != nil) == exists
		}
	}
	require.Eventually(t, cached(true), time.Minute, time.Millisecond)
	unsubscribed := counts.New(counts.Params{
		Reader: c.Reader, Tracker: c.progress, Lookup: c.lookUp, MaxFraction: func() float64 { return 1 }, Now: func() time.Time { return w.now },
	})
	behind := func() int {
		return unsubscribed.Current(&rule).Clones[counts.Key{Rule: rule.Name, Status: survey.Behind, Reason: plan.Missing}]
	}
	require.Equal(t, 1, behind())
	w.remove(w.typed(), "secrets", "platform", "blogsecret")
	require.Eventually(t, cached(false), time.Minute, time.Millisecond)
	require.Zero(t, behind())
}

// A hold reads every clone of its rule, and a RuleStatus asks for each rule in turn.
func TestCountsOfManyRulesAreOneCountWhileNothingChanges(t *testing.T) {
	v := viewOf(t, 5, *synctest.Rule(t, nil))
	c, now := v.controller, time.Unix(5000, 0)
	c.now = func() time.Time { now = now.Add(time.Second); return now } // a count takes a while
	rule, _ := c.Live.Load().Named("blog")
	c.counts.Current(rule)
	before := c.counts.Current(rule)
	require.Same(t, before, c.counts.Current(rule))
	c.counts.TargetChanged(object.Ref{Kind: object.Secret, Namespace: "team-4", Name: "blogsecret"})
	require.NotSame(t, before, c.counts.Current(rule))
}

// The settings are no object in a cache.
func TestAHoldThatEndsIsCountedEverywhere(t *testing.T) {
	w := newCountsWorld(t, 1)
	gone := *synctest.Rule(t, func(c *spec.Config) { c.OnSourceDeleted = spec.Delete })
	w.view.controller.Live.Swap(rules.NewSet(gone))
	for i := range 5 {
		namespace := fmt.Sprint("team-", i)
		w.put(w.metadata, "namespaces", "", &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace, ResourceVersion: w.nextVersion()},
		})
		w.put(w.typed(), "secrets", namespace, w.cloneOf("blog", object.Ref{Kind: object.Secret, Namespace: namespace, Name: "blogsecret"}))
	}
	counted := func(status survey.Status) int {
		total := 0
		for key, clones := range w.view.controller.counts.Latest().Clones {
			if key.Status == status {
				total += clones
			}
		}
		return total
	}
	require.Eventually(t, func() bool { return counted(survey.Held) == 5 }, time.Minute, time.Millisecond)
	w.fraction = 1
	require.Equal(t, 5, counted(survey.Removing))
	w.fraction = 0.3
	require.Equal(t, 5, counted(survey.Held))
}

func TestAScrapeWithoutAChangeReadsNoClone(t *testing.T) {
	allocations := func(namespaces int) float64 {
		v := viewOf(t, namespaces, *synctest.Rule(t, nil))
		v.controller.counts.Latest()
		now := time.Unix(5000, 0)
		v.controller.now = func() time.Time { return now } // no time passes while it counts: no Snapshot is kept
		return testing.AllocsPerRun(10, func() { v.controller.counts.Latest() })
	}
	require.InDelta(t, allocations(10), allocations(500), 20)
}

// clonesOfTen is the View of a cluster with ten rules and so many clones, all in sync.
func clonesOfTen(tb testing.TB, clones int) *View {
	tb.Helper()
	const many = 10
	var set []spec.Rule
	var typed, metadata []runtime.Object
	for i := range many {
		name := fmt.Sprint("source-", i)
		set = append(set, synctest.RuleNamed(tb, name, "", rules.Source{Kind: object.Secret, Name: name}))
		typed = append(typed, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: name, UID: "source-1", ResourceVersion: "5"}, Data: map[string][]byte{"password": []byte("c4n4ry")},
		})
	}
	for i := range clones / many {
		metadata = append(metadata, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("team-", i)},
		})
	}
	empty, _ := viewOn(tb, typed, metadata, set...)
	for i := range clones {
		state, err := empty.controller.State(object.Ref{Kind: object.Secret, Namespace: fmt.Sprint("team-", i/many), Name: fmt.Sprint("source-", i%many)})
		require.NoError(tb, err)
		clone := plan.Plan(state).Desired.ToSecret()
		clone.ResourceVersion = "6"
		typed = append(typed, clone)
	}
	v, _ := viewOn(tb, typed, metadata, set...)
	return v
}

// BenchmarkScrape compares counts with a survey of all clones, which every scrape was
// before. The ratio is of the latter to the former.
func BenchmarkScrape(b *testing.B) {
	for _, clones := range []int{10_000, 100_000} {
		v := clonesOfTen(b, clones)
		c := v.controller
		now := time.Unix(5000, 0)
		c.now = func() time.Time { return now }
		one := object.Ref{Kind: object.Secret, Namespace: "team-5", Name: "source-5"}
		current := 0
		for key, many := range c.counts.Latest().Clones {
			require.Equal(b, survey.Current, key.Status)
			current += many
		}
		require.Equal(b, clones, current)
		var before time.Duration
		for _, bench := range []struct {
			name   string
			scrape func()
		}{
			{"survey", func() { v.Survey(func(survey.CloneStatus) {}) }},
			{"all-changed", func() { c.counts.AllChanged(); c.counts.Latest() }},
			{"one-clone-changed", func() { c.counts.TargetChanged(one); c.counts.Latest() }},
			{"nothing-changed", func() { c.counts.Latest() }},
		} {
			b.Run(fmt.Sprintf("clones=%d/%s", clones, bench.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					bench.scrape()
				}
				each := b.Elapsed() / time.Duration(b.N)
				if before == 0 {
					before = each
				}
				b.ReportMetric(float64(before)/float64(each), "survey/count")
			})
		}
	}
}
