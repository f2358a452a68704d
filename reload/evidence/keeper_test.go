package evidence

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/reload/consumerhealth"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Invariant D11, of what reload sees.
func TestNothingIsBelievedThatWasSeenBeforeAWatchWasLost(t *testing.T) {
	now, lost := time.Unix(0, 0), (*kube.Loss)(nil)
	k := &Keeper{Process: revisions.NewProcess(), Log: zap.NewNop(), Now: func() time.Time { return now }, Lost: func(time.Duration) *kube.Loss { return lost }}
	name := k.Process.Name()
	require.True(t, k.sees())
	require.Equal(t, name, k.Process.Name())

	lost = &kube.Loss{Cache: "pods"}
	require.False(t, k.sees())
	blind := k.Process.Name()
	require.NotEqual(t, name, blind)
	require.False(t, k.sees())
	require.Equal(t, blind, k.Process.Name(), "one loss, one name")

	lost = nil
	require.False(t, k.sees(), "what it missed has not arrived")
	now = now.Add(caughtUp)
	require.True(t, k.sees())
	require.Equal(t, blind, k.Process.Name())
}

func TestWhatFailsIsNamedWithoutALimitThatHidesIt(t *testing.T) {
	var bad []consumerhealth.Result
	for i := range revisions.MaxFailing + 50 {
		bad = append(bad, consumerhealth.Result{Name: fmt.Sprintf("ns/Deployment/%05d", i), State: consumerhealth.Failing, Reason: "CrashLoopBackOff"})
	}
	bad = append(bad, consumerhealth.Result{Name: "a/Deployment/first", State: consumerhealth.Waiting, Reason: "window"})
	failing, causes := causes(bad)
	require.Len(t, failing, revisions.MaxFailing+1, "one more says that there are more")
	require.Len(t, causes, revisions.MaxCauses)
	require.True(t, causes[0].Failing, "what fails comes first")
}

func TestANamespaceThatTakesTheRevisionToALaterStageStillFailsWithIt(t *testing.T) {
	in, err := stages.Compile(stages.Delivery{Stages: []stages.Stage{{Name: "canary", Percent: 1}}})
	require.NoError(t, err)
	d := &delivery{
		rule: &spec.Rule{Stages: in}, stored: &revisions.Stored{Revision: &revisions.Revision{Verdict: revisions.Delivering, Stage: "canary"}}, looked: "canary",
		places: map[string]*place{
			"team-1": {stage: 0, holds: true, readers: []consumerhealth.Result{{Name: "team-1/Deployment/web", State: consumerhealth.Ran}}},
			"team-2": {stage: 1, holds: true, readers: []consumerhealth.Result{
				{Name: "team-2/Deployment/web", State: consumerhealth.Failing}, {Name: "team-2/Deployment/other", State: consumerhealth.Ran},
			}},
			"team-3": {stage: 1, holds: true, readers: []consumerhealth.Result{{Name: "team-3/Deployment/web", State: consumerhealth.Waiting}}},
		},
	}
	require.Equal(t, []revisions.StageEvidence{{Name: "canary", Ran: 1, Namespaces: 2, Proven: 1, Unhealthy: 1, Failed: 1}}, d.evidence("this", "7", time.Unix(0, 0)).Stages)
}

// A stage without soak waits for nothing but the evidence of its last clone.
func TestTheEvidenceOfTheLastCloneOfAStageIsWrittenAtOnce(t *testing.T) {
	in, err := stages.Compile(stages.Delivery{Stages: []stages.Stage{{Name: "canary", Percent: 1}}})
	require.NoError(t, err)
	stored := &revisions.Stored{ObjectMeta: metav1.ObjectMeta{Namespace: "headwater", Name: "shared-2"}}
	stored.Revision = &revisions.Revision{Rule: "app", Source: object.Ref{Kind: object.Secret, Namespace: "src", Name: "shared"}, Verdict: revisions.Delivering, Stage: "canary"}
	key, now := stored.Key(), time.Unix(0, 0)
	recorded := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: stored.ObjectMeta}
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	client := metadatafake.NewSimpleMetadataClient(scheme, recorded)
	k := &Keeper{Process: revisions.NewProcess(), Client: client, Now: func() time.Time { return now }, changes: map[revisions.Key]*changes{key: {}}}
	d := &delivery{rule: &spec.Rule{Stages: in}, stored: stored, looked: "canary", places: map[string]*place{"a": {holds: true, count: 1}, "b": {count: 1}, "later": {stage: 1, count: 1}}}
	kept := func(after time.Duration) (again time.Duration, writes int) {
		now = now.Add(after)
		client.ClearActions()
		again, err := k.keep(t.Context(), key, d)
		require.NoError(t, err)
		return again, len(client.Actions())
	}
	_, writes := kept(0)
	require.Equal(t, 1, writes)
	d.places["a"].count++
	again, writes := kept(100 * time.Millisecond)
	require.Zero(t, writes, "not the last clone")
	require.Equal(t, 900*time.Millisecond, again)
	d.places["b"].holds = true
	_, writes = kept(100 * time.Millisecond)
	require.Equal(t, 1, writes)
	d.places["a"].count++
	again, writes = kept(100 * time.Millisecond)
	require.Zero(t, writes, "no more than one a second")
	require.Equal(t, 900*time.Millisecond, again)
	_, writes = kept(again)
	require.Equal(t, 1, writes)
}

func TestAPodOfAnImmutableCloneShowsNothingUnlessItIsAlone(t *testing.T) {
	pod := func(name string, bound int64) *workload.Pod {
		return &workload.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name)}, BoundAt: time.Unix(bound, 0)}
	}
	clone := &object.Digested{Common: &object.Common{Immutable: true}}
	p := &place{}
	started := func(of *workload.Pod, users ...*workload.Pod) bool {
		found := Found{Users: users, Consumers: []consumerhealth.Consumer{{Pods: []consumerhealth.Pod{{Pod: of, Started: true}}}}}
		p.observe(clone, &found)
		return found.Consumers[0].Pods[0].Started
	}
	old, beside, alone := pod("old", 1), pod("beside", 5), pod("alone", 9)
	require.False(t, started(old, old), "nobody saw what was there when it was bound")
	require.False(t, started(beside, old, beside))
	require.False(t, started(beside, beside), "an older pod was there when it was bound")
	require.False(t, started(alone, beside, alone))
	require.True(t, started(pod("later", 12), pod("later", 12)))
}

func TestAKeyThatTheRuleClonesSinceIsAChangedKey(t *testing.T) {
	digests := func(values map[string]byte) (all object.Digests) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			all = append(all, object.KeyDigest{Key: key, Sum: digest.Sum{values[key]}})
		}
		return all
	}
	base := &revisions.Revision{Digests: digests(map[string]byte{"a": 1, "b": 1})}
	candidate := digests(map[string]byte{"a": 2, "b": 1, "c": 1})
	for sentence, test := range map[string]struct {
		cloned   []spec.CloneKey
		recorded []string
		base     *revisions.Revision
		want     []string
	}{
		"all keys are cloned":                {nil, []string{"a", "c"}, base, []string{"a", "c"}},
		"a key is cloned since":              {[]spec.CloneKey{{From: "a", To: "a"}, {From: "c", To: "new"}}, []string{"a"}, base, []string{"a", "new"}},
		"a key has another name since":       {[]spec.CloneKey{{From: "a", To: "z"}}, []string{"a"}, base, []string{"a", "z"}},
		"a key that did not change has one":  {[]spec.CloneKey{{From: "b", To: "z"}}, []string{"a"}, base, []string{"a"}},
		"the whole object counts as changed": {[]spec.CloneKey{{From: "a", To: "a"}}, nil, base, nil},
		"there is nothing to compare with":   {nil, []string{"a"}, nil, []string{"a"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			stored := &revisions.Stored{Revision: &revisions.Revision{Digests: candidate, ChangedKeys: test.recorded}}
			require.Equal(t, test.want, changedKeys(&spec.Rule{CloneKeys: test.cloned}, stored, test.base))
		})
	}
}
