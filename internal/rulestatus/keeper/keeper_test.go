package keeper

import (
	"context"
	"fmt"
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

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// leader is what a leader knows.
type leader struct {
	mu      sync.Mutex
	settled bool
	// unread is true while the clones of no rule have been read.
	unread  bool
	rules   []string
	wake    loop.Wake
	revised func(rule string)
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

func (l *leader) Facts(rules []string) (all []*rulestatus.Facts, again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rule := range rules {
		clones := rulestatus.NewCloneFacts()
		for _, status := range l.clones[rule] {
			clones.Add(survey.CloneStatus{Rule: rule, Status: status})
		}
		all = append(all, &rulestatus.Facts{
			Removed: !slices.Contains(l.rules, rule), Clones: clones, Unread: l.unread,
			Sources: rulestatus.Sources{Total: 1, First: []rulestatus.Source{{Kind: "Secret", Name: "shared"}}},
		})
	}
	return all, 0
}

func (l *leader) Follow(wake loop.Wake, revised func(string)) (stop func()) {
	l.change(func() { l.wake, l.revised = wake, revised })
	return func() { l.change(func() { l.wake = nil }) }
}

// change sets what the leader knows.
func (l *leader) change(set func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set()
}

type fixture struct {
	*testing.T
	keeper *Keeper
	*leader

	client *dynamicfake.FakeDynamicClient
	told   []string
	logs   *observer.ObservedLogs
	log    *zap.Logger
}

// inVirtualTime runs the test in a bubble: time passes only while every goroutine
// waits.
func inVirtualTime(t *testing.T, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		core, logs := observer.New(zapcore.WarnLevel)
		test(&fixture{
			T: t, logs: logs, log: zap.New(core),
			leader: &leader{settled: true, rules: []string{"blog"}, clones: map[string][]survey.Status{"blog": {survey.Current}}},
			client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{rulestatus.GVR: "RuleStatusList"}),
		})
	})
}

// Record implements recorder.
func (f *fixture) Record(event events.Event) {
	f.change(func() { f.told = append(f.told, event.About.Kind+" "+event.Reason) })
}

// run starts a Keeper.
func (f *fixture) run() (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan struct{})
	f.keeper = New(f.client, f.leader, f, clock.RealClock{}, f.log)
	go func() {
		defer close(ended)
		_ = f.keeper.Run(ctx)
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
			f.wake.Notify()
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
		f.wake.Notify()
		f.pass(0)
		require.Equal(f, "Conflict", f.status("blog").Condition(rulestatus.Ready).Reason)
		f.change(func() { f.rules = append(f.rules, "shop") })
		todos, known := f.keeper.Todos()
		require.True(f, known)
		require.Equal(f, []rulestatus.Todo{
			{Rule: "blog", Reason: "Conflict", Message: "1 of 2 clones in sync: 1 conflict", Person: true, Command: "headwater plan -o wide"},
			{Rule: "shop", Reason: "NotReported"},
		}, todos)
	})
}

// People steer deliveries by what a status says.
func TestAChangeOfARevisionIsReportedWithinASecond(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		f.run()
		f.pass(time.Minute)
		f.writes()
		for range 3 {
			f.change(func() { f.clones["blog"] = append(f.clones["blog"], survey.Current) })
			f.revised("blog")
			f.pass(soon)
			require.Equal(f, []string{"update"}, f.writes())
			require.Equal(f, len(f.clones["blog"]), f.status("blog").Clones.Current)
		}
		f.revised("blog")
		f.pass(Interval)
		require.Empty(f, f.writes(), "nothing changed")
	})
}

// Helm and kubectl may upgrade the service first.
func TestWhatTheKindDoesNotHaveIsWrittenOnce(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		f.client.PrependReactor("*", rulestatus.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
			if written, is := action.(interface{ GetObject() runtime.Object }); is {
				unstructured.RemoveNestedField(written.GetObject().(*unstructured.Unstructured).Object, "status", "sources")
			}
			return false, nil, nil
		})
		f.run()
		f.pass(10 * Interval)
		require.Equal(f, []string{"create"}, f.writes())
		require.Equal(f, 1, f.logs.FilterMessageSnippet("apply deploy/crd.yaml of this one").Len())
		f.change(func() { f.clones["blog"] = append(f.clones["blog"], survey.Current) })
		f.wake.Notify()
		f.pass(10 * Interval)
		require.Equal(f, []string{"update"}, f.writes())
	})
}

func TestAConditionThatTurnsIsReportedOnTheStatusAndTheSource(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		f.run()
		f.pass(time.Minute)
		require.Empty(f, f.told)
		turn := func(to survey.Status, after time.Duration) {
			f.change(func() { f.clones["blog"] = []survey.Status{to} })
			f.wake.Notify()
			f.pass(after)
		}
		turn(survey.Conflicting, time.Minute)
		require.Equal(f, []string{"RuleStatus RuleNotReady", "Secret RuleNotReady"}, f.told)
		turn(survey.Current, 30*time.Second)
		require.Equal(f, []string{"RuleStatus RuleReady", "Secret RuleReady"}, f.told[2:])
		turn(survey.Conflicting, 30*time.Second)
		require.Len(f, f.told, 4, "it was over for less than a minute")
	})
}

func TestNothingChangedMeansZeroWritesOfStatuses(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		stop := f.run()
		f.pass(time.Minute)
		require.Equal(f, []string{"create"}, f.writes())
		f.wake.Notify()
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

func TestTheStatusOfARemovedRuleStaysWhileItsClonesAreNotRead(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		f.run()
		f.pass(time.Minute)
		f.change(func() { f.unread, f.rules, f.clones = true, nil, nil })
		f.writes()
		f.pass(time.Minute)
		require.Empty(f, f.writes(), "a clone may be left")
		f.change(func() { f.unread = false })
		f.pass(time.Minute)
		require.Equal(f, []string{"delete"}, f.writes())
	})
}

func TestStatusesThatAreRightKeepNoneFromBeingLookedAt(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		f.rules = nil
		for number := range 3 * perStep {
			f.rules = append(f.rules, fmt.Sprintf("rule-%03d", number))
		}
		stop := f.run()
		f.pass(time.Minute)
		require.Len(f, f.writes(), 3*perStep)
		stop()
		last := f.rules[len(f.rules)-1]
		f.run()
		f.pass(time.Minute)
		require.Empty(f, f.writes())
		f.change(func() { f.clones[last] = []survey.Status{survey.Conflicting} })
		f.pass(2 * Interval)
		require.Equal(f, []string{"update"}, f.writes())
		require.Equal(f, "Conflict", f.status(last).Condition(rulestatus.Ready).Reason)
	})
}

func TestManyForgedStatusesDelayNoOther(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		forged := &unstructured.Unstructured{Object: map[string]any{"status": "forged"}}
		forged.SetAPIVersion(rulestatus.GVR.GroupVersion().String())
		forged.SetKind(rulestatus.Kind)
		for number := range 1000 {
			forged.SetName(fmt.Sprint("forged-", number))
			_, err := f.client.Resource(rulestatus.GVR).Create(f.Context(), forged, metav1.CreateOptions{})
			require.NoError(f, err)
		}
		f.client.ClearActions()
		f.run()
		f.pass(syncedPoll)
		writes := f.writes()
		require.Equal(f, "create", writes[0], "the rule in force is first")
		require.Len(f, writes, perStep)
		f.change(func() { f.clones["blog"] = append(f.clones["blog"], survey.Current) })
		f.pass(Interval)
		require.Contains(f, f.writes(), "update")
		f.pass(time.Minute)
		left, err := f.client.Resource(rulestatus.GVR).List(f.Context(), metav1.ListOptions{})
		require.NoError(f, err)
		require.Len(f, left.Items, 1)
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

func TestAStatusThatSomebodyMadeForARuleThatNobodyHasIsDeleted(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		for name, status := range map[string]any{
			"ready":      map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready"}}},
			"unreadable": map[string]any{"clones": "many"},
			"empty":      map[string]any{},
		} {
			forged := &unstructured.Unstructured{Object: map[string]any{"status": status}}
			forged.SetAPIVersion(rulestatus.GVR.GroupVersion().String())
			forged.SetKind(rulestatus.Kind)
			forged.SetName(name)
			_, err := f.client.Resource(rulestatus.GVR).Create(f.Context(), forged, metav1.CreateOptions{})
			require.NoError(f, err)
		}
		f.client.ClearActions()
		f.clones["ready"] = []survey.Status{survey.Retained}
		f.run()
		f.pass(time.Minute)
		require.ElementsMatch(f, []string{"create", "delete", "update"}, f.writes(), "blog, unreadable, ready")
		require.Equal(f, "RuleRemoved", f.status("ready").Condition(rulestatus.Ready).Reason, "clones say the rule")
		f.get("empty")
		f.change(func() { delete(f.clones, "ready") })
		f.pass(time.Minute)
		require.Equal(f, []string{"delete"}, f.writes())
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
		_, known := f.keeper.Todos()
		require.False(f, known)
		installed.Store(true)
		f.pass(maxProbe)
		require.Equal(f, "Ready", f.status("blog").Condition(rulestatus.Ready).Reason)
	})
}

func TestAStatusThatCannotBeWrittenIsADoubt(t *testing.T) {
	forbidden := apierrors.NewForbidden(rulestatus.GVR.GroupResource(), "blog", nil)
	for sentence, test := range map[string]struct {
		verb   string
		err    error
		change func(l *leader)
	}{
		"it may not be created": {"create", forbidden, func(*leader) {}},
		"the cache stays behind, so each write conflicts": {
			"update", apierrors.NewConflict(rulestatus.GVR.GroupResource(), "old", nil),
			func(l *leader) { l.clones["old"] = []survey.Status{survey.Failed} },
		},
		"that of a removed rule may not be deleted": {"delete", forbidden, func(l *leader) { l.rules = []string{"blog"}; delete(l.clones, "old") }},
	} {
		t.Run(sentence, func(t *testing.T) {
			inVirtualTime(t, func(f *fixture) {
				f.rules, f.clones["old"] = []string{"old"}, []survey.Status{survey.Current}
				f.run()
				f.pass(time.Minute)
				var refused atomic.Bool
				refused.Store(true)
				f.client.PrependReactor(test.verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) { return refused.Load(), nil, test.err })
				f.change(func() { f.rules = []string{"old", "blog"}; test.change(f.leader) })
				f.wake.Notify()
				f.pass(failsAfter / 2)
				require.Empty(f, f.keeper.Doubt())
				f.pass(time.Minute)
				require.Contains(f, f.keeper.Doubt(), "RuleStatuses cannot be written since ")
				require.Contains(f, f.keeper.Doubt(), test.err.Error())
				refused.Store(false)
				f.pass(10 * time.Minute)
				require.Empty(f, f.keeper.Doubt())
			})
		})
	}
}

func TestAWatchThatIsLostIsADoubtWhileTheKindIsInstalled(t *testing.T) {
	inVirtualTime(t, func(f *fixture) {
		stop := f.run()
		f.keeper.Lost = func() bool { return true }
		f.pass(time.Minute)
		require.Contains(f, f.keeper.Doubt(), "cannot be watched")
		stop()
		require.Empty(f, f.keeper.Doubt())
	})
}
