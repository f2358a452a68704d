package keeper

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// leader is what a leader knows.
type leader struct {
	mu      sync.Mutex
	settled bool
	rules   []string
	// version is that of the only source.
	version string
	// clones are the states of the clones of each rule.
	clones map[string][]survey.Status
}

func (l *leader) Working() bool { return true }

func (l *leader) Settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled
}

func (l *leader) Rules() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.rules)
}

func (l *leader) RulesOf(target object.Ref) []string { return []string{target.Name} }

func (l *leader) Survey(rule string) *rulestatus.CloneFacts {
	l.mu.Lock()
	defer l.mu.Unlock()
	facts := rulestatus.NewCloneFacts()
	for _, status := range l.clones[rule] {
		facts.Add(survey.CloneStatus{Rule: rule, Status: status})
	}
	return facts
}

func (l *leader) Facts(rule string, clones *rulestatus.CloneFacts) *rulestatus.Facts {
	removed := !slices.Contains(l.Rules(), rule)
	l.mu.Lock()
	defer l.mu.Unlock()
	sources := rulestatus.Sources{Total: 1, First: []rulestatus.Source{{Name: "shared", ResourceVersion: l.version}}}
	facts := &rulestatus.Facts{Removed: removed, Sources: sources}
	if !clones.Empty() {
		facts.Clones = clones
	}
	return facts
}

// change sets what the leader knows.
func (l *leader) change(set func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set()
}

type fixture struct {
	*testing.T
	*leader

	client  *dynamicfake.FakeDynamicClient
	touched *Touched
	logs    *observer.ObservedLogs
	log     *zap.Logger
}

// inVirtualTime runs the test in a bubble: time passes only while every goroutine
// waits.
func inVirtualTime(t *testing.T, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		core, logs := observer.New(zapcore.WarnLevel)
		test(&fixture{
			T: t, logs: logs, log: zap.New(core), touched: &Touched{},
			leader: &leader{settled: true, rules: []string{"blog"}, clones: map[string][]survey.Status{"blog": {survey.Current}}},
			client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{rulestatus.GVR: "RuleStatusList"}),
		})
	})
}

// run starts a Keeper.
func (f *fixture) run() (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = New(f.client, f.leader, f.touched, clock.RealClock{}, f.log).Run(ctx)
	}()
	stop = func() { cancel(); <-ended }
	f.Cleanup(stop)
	return stop
}

// pass lets virtual time pass.
func (*fixture) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// writes returns the verbs of all requests since the last call that write.
func (f *fixture) writes() []string {
	var verbs []string
	for _, action := range f.client.Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "watch" && verb != "get" {
			verbs = append(verbs, verb)
		}
	}
	f.client.ClearActions()
	return verbs
}

func (f *fixture) get(rule string) *unstructured.Unstructured {
	f.Helper()
	found, err := f.client.Resource(rulestatus.GVR).Get(f.Context(), rule, metav1.GetOptions{})
	require.NoError(f, err)
	return found
}

func (f *fixture) status(rule string) *rulestatus.Status {
	f.Helper()
	var decoded rulestatus.RuleStatus
	require.NoError(f, runtime.DefaultUnstructuredConverter.FromUnstructured(f.get(rule).Object, &decoded))
	return &decoded.Status
}

func TestManyChangesAreOneWritePerRuleAndInterval(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		f.rules = []string{"blog", "shop"}
		f.run()
		f.pass(Interval)
		require.Equal(f, []string{"create", "create"}, f.writes())
		const intervals = 12
		for until := time.Now().Add(intervals * Interval); time.Now().Before(until); f.pass(50 * time.Millisecond) {
			f.change(func() { f.clones["blog"] = append(f.clones["blog"], survey.Current) })
			f.touched.Touched(object.Ref{Name: "blog"})
		}
		f.pass(Interval)
		require.InDelta(f, intervals, len(f.writes()), 1)
		require.Equal(f, len(f.clones["blog"]), f.status("blog").Clones.Current)
	})
}

func TestAChangeOfAFewClonesIsReportedAtOnce(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		f.run()
		f.pass(time.Minute + time.Second)
		f.change(func() { f.clones["blog"] = []survey.Status{survey.Current, survey.Conflicting} })
		f.touched.Touched(object.Ref{Name: "blog"})
		f.pass(coalesce)
		require.Equal(f, "Conflict", f.status("blog").Condition(rulestatus.Ready).Reason)
	})
}

func TestTheClonesOfAStatusAreAsNewAsTheVersionOfItsSource(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		f.run()
		f.pass(time.Minute)
		f.change(func() { f.version, f.clones["blog"] = "2", []survey.Status{survey.Behind} })
		f.pass(Interval)
		require.Equal(f, "2", f.status("blog").Sources.First[0].ResourceVersion)
		require.Equal(f, "Progressing", f.status("blog").Condition(rulestatus.Ready).Reason)
	})
}

func TestNothingChangedMeansZeroWritesOfStatuses(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		stop := f.run()
		f.pass(time.Minute)
		require.Equal(f, []string{"create"}, f.writes())
		f.touched.Touched(object.Ref{Name: "blog"})
		f.pass(time.Hour)
		stop()
		f.change(func() { f.settled, f.clones["blog"] = false, []survey.Status{survey.Failed} })
		f.run()
		f.pass(time.Minute)
		require.Empty(f, f.writes(), "a new leader says nothing before it has reconciled everything")
		f.change(func() { f.settled, f.clones["blog"] = true, []survey.Status{survey.Current} })
		f.pass(time.Hour)
		require.Empty(f, f.writes())
	})
}

func TestTheStatusOfARemovedRuleStaysWhileClonesDo(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		f.run()
		f.pass(time.Minute)
		f.change(func() { f.rules, f.clones["blog"] = nil, []survey.Status{survey.Retained} })
		f.pass(time.Minute)
		require.Equal(f, "RuleRemoved", f.status("blog").Condition(rulestatus.Ready).Reason)
		f.writes()
		f.change(func() { f.clones["blog"] = nil })
		f.pass(time.Minute)
		require.Equal(f, []string{"delete"}, f.writes())
	})
}

func TestANewLeaderRemovesNoStatusBeforeItKnowsTheClones(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		stop := f.run()
		f.pass(time.Minute)
		stop()
		f.writes()
		f.settled, f.rules, f.clones = false, nil, nil
		f.run()
		f.pass(time.Hour)
		require.Empty(f, f.writes())
	})
}

func TestAnObjectOfSomebodyElseStaysAndGetsItsStatusWhenItsRuleIsInForce(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		var applied unstructured.Unstructured
		applied.SetAPIVersion(rulestatus.GVR.GroupVersion().String())
		applied.SetKind(rulestatus.Kind)
		applied.SetName("shop")
		applied.SetAnnotations(map[string]string{"tracked": "by a GitOps tool"})
		_, err := f.client.Resource(rulestatus.GVR).Create(f.Context(), &applied, metav1.CreateOptions{})
		require.NoError(f, err)
		f.client.ClearActions()
		f.run()
		f.pass(time.Minute)
		require.Equal(f, []string{"create"}, f.writes(), "that of the rule in force")
		f.change(func() { f.rules, f.clones["shop"] = append(f.rules, "shop"), []survey.Status{survey.Current} })
		f.pass(time.Minute)
		require.Equal(f, []string{"update"}, f.writes())
		require.Equal(f, "Ready", f.status("shop").Condition(rulestatus.Ready).Reason)
		require.Equal(f, "by a GitOps tool", f.get("shop").GetAnnotations()["tracked"])
	})
}

func TestMetadataOfOthersStaysAndTheirStatusDoesNot(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		f.run()
		f.pass(time.Minute)
		edited := f.get("blog")
		edited.SetAnnotations(map[string]string{"team": "platform"})
		edited.SetLabels(map[string]string{"tier": "one"})
		require.NoError(f, unstructured.SetNestedField(edited.Object, "nonsense", "status", "clones"))
		_, err := f.client.Resource(rulestatus.GVR).Update(f.Context(), edited, metav1.UpdateOptions{})
		require.NoError(f, err)
		f.pass(2 * Interval)
		require.Equal(f, 1, f.status("blog").Clones.Current)
		require.Equal(f, "platform", f.get("blog").GetAnnotations()["team"])
		require.Equal(f, "one", f.get("blog").GetLabels()["tier"])
	})
}

func TestWithoutTheKindTheKeeperSaysSoOnceAndRarelyLooks(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		var installed atomic.Bool
		f.client.PrependReactor("list", rulestatus.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			if installed.Load() {
				return false, nil, nil
			}
			return true, nil, apierrors.NewNotFound(rulestatus.GVR.GroupResource(), "")
		})
		f.run()
		f.pass(time.Hour)
		f.client.ClearActions()
		f.pass(4 * time.Hour)
		require.Len(f, f.client.Actions(), 4*6)
		require.Equal(f, 1, f.logs.FilterMessageSnippet("is not installed").Len())
		installed.Store(true)
		f.pass(maxProbe)
		require.Equal(f, "Ready", f.status("blog").Condition(rulestatus.Ready).Reason)
	})
}
