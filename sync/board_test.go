package sync

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/board"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
	"github.com/headwater-k8s/headwater/test/seed"
)

// Whatever happens, the board knows how every clone stands as a full recount does, and
// so does a reader of its changes. HEADWATER_SEED repeats a run.
func TestTheBoardIsAFullRecount(t *testing.T) {
	w := newBoardWorld(t, seed.Of(t))
	unseen := slices.DeleteFunc(slices.Clone(survey.Statuses), func(status survey.Status) bool {
		return status == survey.Drifting || status == survey.Refused // rare here
	})
	var steps []string
	for len(steps) < 400 || len(unseen) > 0 {
		require.Less(t, len(steps), 10_000, "no clone was %s", unseen)
		steps = append(steps, w.step())
		if problem := w.settle(); problem != "" {
			t.Fatalf("after %q: %s", steps[max(0, len(steps)-5):], problem)
		}
		for _, f := range read(w.view) {
			unseen = slices.DeleteFunc(unseen, func(status survey.Status) bool { return status == f.Status })
		}
	}
}

// settle waits until the board is right. It returns what is wrong with it if it stays
// wrong.
func (w *boardWorld) settle() (problem string) {
	for deadline := time.After(time.Minute); ; {
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

func (w *boardWorld) difference() string {
	known, followed, recounted := map[string]survey.CloneStatus{}, map[string]survey.CloneStatus{}, w.recount()
	for _, f := range read(w.view) {
		key := f.Rule + " " + f.Target.String()
		if shown, found := recounted[key]; found && shown.Since.IsZero() { // the objects do not show it
			f.Since, f.Seen = time.Time{}, false
		}
		known[key] = f
	}
	if !reflect.DeepEqual(known, recounted) {
		return fmt.Sprintf("known %v, recounted %v", known, recounted)
	}
	counted := map[board.Key]int{}
	for _, f := range known {
		counted[board.Key{Rule: w.view.controller.RuleLabel(f.Rule), Status: f.Status, Reason: f.Decision.Reason}]++
	}
	clones, oldest := w.view.Counts()
	if !reflect.DeepEqual(clones, counted) {
		return fmt.Sprintf("counted %v, known %v", clones, counted)
	}
	w.full.AllChanged()
	if _, full := w.full.Counts(); !reflect.DeepEqual(oldest, full) {
		return fmt.Sprintf("counted %v, in full %v", oldest, full)
	}
	w.follow()
	for _, places := range w.followed {
		for _, f := range places {
			followed[f.Rule+" "+f.Target.String()] = f
		}
	}
	for _, all := range []map[string]survey.CloneStatus{known, followed} {
		for key, f := range all { // a follower hears of neither
			f.Since, f.Seen, f.Decision.Message = time.Time{}, false, ""
			all[key] = f
		}
	}
	if !reflect.DeepEqual(known, followed) {
		return fmt.Sprintf("known %v, followed %v", known, followed)
	}
	return ""
}

// recount looks at every target of every rule, and at every clone, rule by rule.
func (w *boardWorld) recount() map[string]survey.CloneStatus {
	c, all, reading := w.view.controller, map[string]survey.CloneStatus{}, readingOf(w.view)
	report := func(f survey.CloneStatus) {
		f = c.progress.Mark(f, w.now())
		f.Decision.Desired = nil
		if !f.Since.IsZero() {
			f.Since = time.Unix(0, f.Since.UnixNano())
		}
		all[f.Rule+" "+f.Target.String()] = f
	}
	for _, rule := range c.Live.Load().All() {
		for _, source := range c.Sources(rule.Base) {
			for _, target := range c.Targets(rule, source) {
				_ = reading.Report(target, report)
			}
		}
	}
	for _, clone := range c.Caches.Clones[object.Secret].List() {
		_ = reading.Report(clone.Ref(), report)
	}
	return all
}

// follow does what a reader of the board's changes does.
func (w *boardWorld) follow() {
	version, all := w.view.Changes(w.at, func(namespace string) { w.followed[namespace] = nil })
	if all {
		clear(w.followed)
	}
	for _, namespace := range w.view.controller.Caches.Namespaces.List() {
		if places, known := w.followed[namespace.Name]; all || known && places == nil {
			w.view.Each(namespace.Name, func(*board.Standing) bool { return true }, func(f survey.CloneStatus) {
				w.followed[namespace.Name] = append(w.followed[namespace.Name], f)
			})
		}
	}
	w.at = version
}

// A handler may run later than a reader of the cache.
func TestTheBoardIsAsNewAsTheSources(t *testing.T) {
	w := newBoardWorld(t, 1)
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
	unsubscribed := board.New(board.Params{
		Reader: c.Reader, Tracker: c.progress, Lookup: c.lookUp, MaxFraction: func() float64 { return 1 }, Now: w.now,
	})
	behind := func() int {
		unsubscribed.Refresh(time.Hour, time.Hour)
		clones, _ := unsubscribed.Counts()
		return clones[board.Key{Rule: rule.Name, Status: survey.Behind, Reason: plan.Missing}]
	}
	require.Equal(t, 1, behind())
	w.remove(w.typed(), "secrets", "platform", "blogsecret")
	require.Eventually(t, cached(false), time.Minute, time.Millisecond)
	require.Zero(t, behind())
}

func TestAStatusStandsSinceItWasSeenFirstIfNothingShowsThat(t *testing.T) {
	v := viewOf(t, 5, twoRules(t)...)
	now := time.Unix(5000, 0)
	v.controller.now = func() time.Time { return now }
	conflict := func() survey.CloneStatus {
		all := read(v)
		return all[slices.IndexFunc(all, func(f survey.CloneStatus) bool { return f.Rule == "second" && f.Target.Namespace == "team-4" })]
	}
	require.Equal(t, now, conflict().Since)
	now = now.Add(time.Hour)
	v.AllChanged()
	require.Equal(t, now.Add(-time.Hour), conflict().Since)
	require.True(t, conflict().Seen)
}

func TestAFollowerIsWokenOnceUntilTheBoardIsRead(t *testing.T) {
	v := viewOf(t, 5, *synctest.Rule(t, nil))
	now := time.Unix(5000, 0)
	v.controller.now = func() time.Time { return now }
	wake, target := loop.NewWake(), object.Ref{Kind: object.Secret, Namespace: "team-4", Name: "blogsecret"}
	stop := v.Follow(wake)
	require.Zero(t, v.Refresh(0, 0))
	change := func() (woken bool) {
		v.Changed(target)
		select {
		case <-wake:
			return true
		default:
			return false
		}
	}
	require.True(t, change())
	require.False(t, change())
	require.Equal(t, time.Second, v.Refresh(time.Second, 0), "there may be more soon")
	now = now.Add(time.Second)
	require.Zero(t, v.Refresh(time.Second, 0))
	require.True(t, change())
	v.Refresh(0, 0)
	stop()
	require.False(t, change())
}

// The settings are no object in a cache.
func TestAHoldThatEndsIsCountedEverywhere(t *testing.T) {
	w := newBoardWorld(t, 1)
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
		for _, f := range read(w.view) {
			if f.Status == status {
				total++
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
		v.Counts()
		now := time.Unix(5000, 0)
		v.controller.now = func() time.Time { return now } // no time passes while it counts: no Snapshot is kept
		return testing.AllocsPerRun(10, func() { v.Counts() })
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
	for _, total := range []int{10_000, 100_000} {
		v := clonesOfTen(b, total)
		c := v.controller
		now := time.Unix(5000, 0)
		c.now = func() time.Time { return now }
		one := object.Ref{Kind: object.Secret, Namespace: "team-5", Name: "source-5"}
		current := 0
		clones, _ := v.Counts()
		for key, many := range clones {
			require.Equal(b, survey.Current, key.Status)
			current += many
		}
		require.Equal(b, total, current)
		var before time.Duration
		for _, bench := range []struct {
			name   string
			scrape func()
		}{
			{"survey", func() { c.Survey(0.3, c.lookUp, func(survey.CloneStatus) {}) }},
			{"all-changed", func() { v.AllChanged(); v.Counts() }},
			{"one-clone-changed", func() { v.Changed(one); v.Counts() }},
			{"nothing-changed", func() { v.Counts() }},
		} {
			b.Run(fmt.Sprintf("clones=%d/%s", total, bench.name), func(b *testing.B) {
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
