package delivery_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/test/seed"
)

var (
	birth  = time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
	source = object.Ref{Kind: object.Secret, Namespace: "platform", Name: "shared"}
)

// stagesOf compiles a delivery: a canary namespace, half of the others, the rest.
func stagesOf(t *testing.T, change func(*stages.Delivery)) *stages.Stages {
	t.Helper()
	config := spec.Config{Delivery: &stages.Delivery{Stages: []stages.Stage{
		{Name: "canary", Namespaces: &stages.StageNamespaces{Include: []string{"canary-*"}}, Soak: &metav1.Duration{Duration: 10 * time.Minute}},
		{Name: "half", Percent: 50},
	}, Rest: stages.Rest{Soak: &metav1.Duration{}}}}
	if change != nil {
		change(config.Delivery)
	}
	config.Default()
	rule, err := spec.Compile(rules.Base{Name: "app", Source: rules.Source{Kind: source.Kind, Namespace: source.Namespace, Name: source.Name}}, config, "headwater-system")
	require.NoError(t, err)
	return rule.Stages
}

func content(value string) (object.Content, object.Digests) {
	return object.Content{Type: "Opaque", Data: map[string][]byte{"k": []byte(value)}}, object.Digests{{Key: "k", Sum: [16]byte([]byte(fmt.Sprintf("%16s", value)))}}
}

func revision(number int, verdict revisions.Verdict, change ...func(*revisions.Revision)) *revisions.Revision {
	r := &revisions.Revision{Number: number, Rule: "app", Source: source, Verdict: verdict}
	r.Content, r.Digests = content(fmt.Sprint(number))
	if r.UnderWay() {
		inStage("canary")(r)
		r.StageSince = birth
	}
	for _, set := range change {
		set(r)
	}
	return r
}

// process is this process: the one that judged.
const process = "this"

// inStage is a revision that passed the stages before that one, which is open.
func inStage(name string) func(*revisions.Revision) {
	return func(r *revisions.Revision) {
		all := []string{"canary", "half", "rest"}
		r.Stage, r.Passed = name, all[:max(0, slices.Index(all, name))]
		r.Evidence = revisions.Evidence{Version: 1, By: process, Look: name, UpTo: "100", Readers: 1}
	}
}

// unopened is a revision whose stage nobody has looked at.
func unopened(r *revisions.Revision) { r.Evidence = revisions.Evidence{} }

// seen adds what is known of a stage's consumers.
func seen(one revisions.StageEvidence) func(*revisions.Revision) {
	return func(r *revisions.Revision) { r.Evidence.Stages = append(r.Evidence.Stages, one) }
}

func pinned(r *revisions.Revision) { r.Pinned = "by jane" }

func TestANamespaceBelongsToTheFirstStageThatTakesIt(t *testing.T) {
	stages := stagesOf(t, nil)
	require.Equal(t, []string{"canary", "half", "rest"}, stages.Names())
	require.Zero(t, stages.Of("canary-1", nil))
	counts := make([]int, 3)
	for i := range 10_000 {
		name := fmt.Sprint("team-", i)
		at := stages.Of(name, nil)
		require.Equal(t, at, stages.Of(name, map[string]string{"any": "label"}), "the same for each revision")
		counts[at]++
	}
	require.Zero(t, counts[0])
	require.InDelta(t, 5000, counts[1], 200)
}

func TestContentIsRecordedOnce(t *testing.T) {
	history := revisions.NewHistory([]*revisions.Revision{
		revision(1, revisions.Delivered), revision(2, revisions.Rejected), revision(3, revisions.Delivered), revision(4, revisions.Superseded), revision(5, revisions.Delivering),
	})
	for sentence, test := range map[string]struct {
		value string
		want  int
	}{
		"the stable content":          {"3", 3},
		"the candidate's":             {"5", 5},
		"what was rejected stays so":  {"2", 2},
		"what was stable before":      {"1", 0},
		"what was superseded is new":  {"4", 0},
		"what was never there is new": {"9", 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			found := history.Of(content(test.value))
			if test.want == 0 {
				require.Nil(t, found)
				return
			}
			require.Equal(t, test.want, found.Number)
		})
	}
}

// Invariant D8.
func TestAHistoryIsBounded(t *testing.T) {
	dice := rand.New(rand.NewPCG(seed.Of(t), 0))
	verdicts := []revisions.Verdict{revisions.Delivered, revisions.Rejected, revisions.Superseded, revisions.Delivering, revisions.Held}
	for range 2000 {
		var all []*revisions.Revision
		for number := range dice.IntN(20) {
			one := revision(number+1, verdicts[dice.IntN(len(verdicts))])
			if dice.IntN(10) == 0 {
				pinned(one)
			}
			all = append(all, one)
		}
		history, keep := revisions.NewHistory(all), 2+dice.IntN(10)
		var current *revisions.Revision // the one with the source's content
		if len(history) > 0 {
			current = history[dice.IntN(len(history))]
		}
		surplus := history.Surplus(keep, current)
		require.LessOrEqual(t, len(history)-len(surplus), max(keep, 5))
		require.GreaterOrEqual(t, len(history)-len(surplus), min(keep, len(history)))
		for _, needed := range []*revisions.Revision{history.Stable(), history.Candidate(), history.Pinned(), history.Newest(), current} {
			if needed != nil {
				require.NotContains(t, surplus, needed)
			}
		}
	}
}

func TestWhatAPersonMayAsk(t *testing.T) {
	history := func() []*revisions.Revision {
		return []*revisions.Revision{revision(1, revisions.Delivered), revision(2, revisions.Rejected), revision(3, revisions.Delivered), revision(4, revisions.Delivering, inStage("half"))}
	}
	now := birth.Add(time.Hour)
	for sentence, test := range map[string]struct {
		request delivery.Request
		history []*revisions.Revision
		want    map[int]revisions.Verdict
		refused string
	}{
		"promote the candidate":                  {delivery.Request{Verb: delivery.Promote, Revision: 4}, history(), map[int]revisions.Verdict{4: revisions.Delivering}, ""},
		"promote what is no longer under way":    {delivery.Request{Verb: delivery.Promote, Revision: 3}, history(), nil, "revision 3 is Delivered, so there is nothing to promote"},
		"promote by a request of a backup":       {delivery.Request{Verb: delivery.Promote, Revision: 4, At: birth.Add(-time.Second)}, history(), nil, "the request is older than an hour; run the command again"},
		"pause the candidate":                    {delivery.Request{Verb: delivery.Pause, Revision: 4}, history(), map[int]revisions.Verdict{4: revisions.Delivering}, ""},
		"resume what is not paused":              {delivery.Request{Verb: delivery.Resume, Revision: 4}, history(), nil, "revision 4 is Delivering, so there is nothing to resume"},
		"roll the candidate back":                {delivery.Request{Verb: delivery.Rollback, Revision: 4}, history(), map[int]revisions.Verdict{4: revisions.Rejected}, ""},
		"go back to an older revision":           {delivery.Request{Verb: delivery.Rollback, To: 1}, history(), map[int]revisions.Verdict{1: revisions.Delivered, 4: revisions.Rejected}, ""},
		"retry to an older revision":             {delivery.Request{Verb: delivery.Retry, Revision: 99, To: 1}, history(), map[int]revisions.Verdict{1: revisions.Delivered, 4: revisions.Rejected}, ""},
		"go back to one that is not kept":        {delivery.Request{Verb: delivery.Rollback, To: 9}, history(), nil, "revision 9 is not kept"},
		"retry what was rejected last":           {delivery.Request{Verb: delivery.Retry, Revision: 2}, history()[:2], map[int]revisions.Verdict{2: revisions.Delivering}, ""},
		"retry what was rejected long ago":       {delivery.Request{Verb: delivery.Retry, Revision: 2}, history(), nil, "revision 2 is Rejected"},
		"retry what a rollback rejected":         {delivery.Request{Verb: delivery.Retry, Revision: 2}, []*revisions.Revision{revision(1, revisions.Delivered, pinned), revision(2, revisions.Rejected)}, map[int]revisions.Verdict{1: revisions.Delivered, 2: revisions.Delivering}, ""},
		"retry it again after one write failed":  {delivery.Request{Verb: delivery.Retry, Revision: 2}, []*revisions.Revision{revision(1, revisions.Delivered, pinned), revision(2, revisions.Delivering)}, map[int]revisions.Verdict{1: revisions.Delivered, 2: revisions.Delivering}, ""},
		"go on with what is held":                {delivery.Request{Verb: delivery.Retry, Revision: 2}, []*revisions.Revision{revision(1, revisions.Delivered), revision(2, revisions.Held)}, map[int]revisions.Verdict{2: revisions.Delivering}, ""},
		"end the rollback to an older revision":  {delivery.Request{Verb: delivery.Resume, Revision: 1}, []*revisions.Revision{revision(1, revisions.Delivered, pinned), revision(2, revisions.Delivered)}, map[int]revisions.Verdict{1: revisions.Delivered}, ""},
		"go back from one older one to another":  {delivery.Request{Verb: delivery.Rollback, To: 2}, []*revisions.Revision{revision(1, revisions.Delivered, pinned), revision(2, revisions.Delivered)}, map[int]revisions.Verdict{1: revisions.Delivered, 2: revisions.Delivered}, ""},
		"roll back what failed meanwhile":        {delivery.Request{Verb: delivery.Rollback, Revision: 2}, history(), nil, "revision 2 is Rejected, so there is nothing to rollback"},
		"go back to what was rejected":           {delivery.Request{Verb: delivery.Rollback, To: 2}, history(), nil, "revision 2 was never delivered to every namespace"},
		"go back to the candidate":               {delivery.Request{Verb: delivery.Rollback, To: 4}, history(), nil, "revision 4 was never delivered to every namespace"},
		"go back to what was superseded":         {delivery.Request{Verb: delivery.Rollback, To: 1}, []*revisions.Revision{revision(1, revisions.Superseded), revision(2, revisions.Delivered)}, nil, "it is Superseded"},
		"promote a stage that has passed":        {delivery.Request{Verb: delivery.Promote, Revision: 4, Stage: "canary"}, history(), nil, "nothing to promote"},
		"promote everywhere":                     {delivery.Request{Verb: delivery.Promote, Revision: 4, Stage: "half", All: true}, history(), map[int]revisions.Verdict{4: revisions.Delivered}, ""},
		"a verb that this version does not know": {delivery.Request{Verb: "hasten", Revision: 4}, history(), nil, "nothing to hasten"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if test.request.By = "jane"; test.request.At.IsZero() {
				test.request.At = now
			}
			changed, err := test.request.Apply(stagesOf(t, nil), revisions.NewHistory(test.history), nil, now)
			if test.refused != "" {
				require.ErrorContains(t, err, test.refused)
				require.Empty(t, changed)
				return
			}
			require.NoError(t, err)
			if to := test.request.To; to != 0 {
				require.Equal(t, to, changed[0].Number, "the clones must not go by way of another one")
			}
			got := map[int]revisions.Verdict{}
			for _, one := range changed {
				got[one.Number] = one.Verdict
				require.Equal(t, test.request.To == one.Number, one.Pinned != "", "revision %d", one.Number)
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestWhatSkipsTheStagesDoesSoOnceItIsReleased(t *testing.T) {
	for stage, allAtOnce := range map[string]bool{"canary": false, "rest": true} {
		held := revision(2, revisions.Held, func(r *revisions.Revision) { r.Stage, r.Passed, r.AllAtOnce = "", nil, allAtOnce })
		history := revisions.NewHistory([]*revisions.Revision{revision(1, revisions.Delivered), held})
		changed, err := delivery.Request{Verb: delivery.Retry, Revision: 2}.Apply(stagesOf(t, nil), history, held, birth)
		require.NoError(t, err)
		require.Equal(t, []any{stage, allAtOnce}, []any{changed[0].Stage, changed[0].AllAtOnce})
	}
}

func TestHowLongARollbackLasts(t *testing.T) {
	over := func(number int) func(*revisions.Revision) {
		return func(r *revisions.Revision) { r.Pinned, r.PinnedOver = "by jane", number }
	}
	for sentence, test := range map[string]struct {
		history []*revisions.Revision
		current int
		ends    bool
	}{
		"the source is as it was":                   {[]*revisions.Revision{revision(1, revisions.Delivered, over(2)), revision(2, revisions.Delivered)}, 2, false},
		"the source has what the rollback rejected": {[]*revisions.Revision{revision(1, revisions.Delivered, over(3)), revision(2, revisions.Delivered), revision(3, revisions.Rejected)}, 3, false},
		"it was edited back to what was delivered":  {[]*revisions.Revision{revision(1, revisions.Delivered, over(3)), revision(2, revisions.Delivered), revision(3, revisions.Rejected)}, 2, true},
		"it was edited, and is not valid":           {[]*revisions.Revision{revision(1, revisions.Delivered, over(2)), revision(2, revisions.Delivered), revision(3, revisions.Rejected)}, 3, false},
		"it was edited, of a rule without stages":   {[]*revisions.Revision{revision(1, revisions.Delivered, over(2)), revision(2, revisions.Delivered), revision(3, revisions.Delivered)}, 3, true},
		"another revision is under way":             {[]*revisions.Revision{revision(1, revisions.Delivered, over(2)), revision(2, revisions.Delivered), revision(3, revisions.Delivering)}, 3, true},
		"what it rejected still seems under way":    {[]*revisions.Revision{revision(1, revisions.Delivered, over(3)), revision(2, revisions.Delivered), revision(3, revisions.Delivering)}, 3, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			history := revisions.NewHistory(test.history)
			require.Equal(t, test.ends, history.EndsRollback(history.Numbered(test.current)))
		})
	}
}
