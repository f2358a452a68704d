package delivery_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/spec"
)

var (
	birth  = time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
	source = object.Ref{Kind: object.Secret, Namespace: "platform", Name: "shared"}
)

// stagesOf compiles a delivery: a canary namespace, half of the others, the rest.
func stagesOf(t *testing.T, change func(*spec.Delivery)) *spec.Stages {
	t.Helper()
	config := spec.Config{Delivery: &spec.Delivery{Stages: []spec.Stage{
		{Name: "canary", Namespaces: &spec.StageNamespaces{Include: []string{"canary-*"}}, Soak: metav1.Duration{Duration: 10 * time.Minute}},
		{Name: "half", Percent: 50},
	}}}
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

func revision(number int, verdict delivery.Verdict, change ...func(*delivery.Revision)) *delivery.Revision {
	r := &delivery.Revision{Number: number, Rule: "app", Source: source, Verdict: verdict}
	r.Content, r.Digests = content(fmt.Sprint(number))
	if r.UnderWay() {
		r.Stage, r.StageSince = "canary", birth
	}
	for _, set := range change {
		set(r)
	}
	return r
}

func inStage(name string) func(*delivery.Revision) {
	return func(r *delivery.Revision) { r.Stage = name }
}

func pinned(r *delivery.Revision) { r.Pinned = "by jane" }

func TestWhichRevisionANamespaceGets(t *testing.T) {
	const canary, half, rest = 0, 1, 2
	for sentence, test := range map[string]struct {
		history    []*delivery.Revision
		stage, has int
		want       int // 0: none
	}{
		"nothing is recorded yet":                              {nil, canary, 0, 0},
		"the only revision, which was delivered at once":       {[]*delivery.Revision{revision(1, delivery.Delivered)}, rest, 0, 1},
		"the only revision, which is not valid":                {[]*delivery.Revision{revision(1, delivery.Rejected)}, rest, 0, 0},
		"the candidate, in a stage that it has reached":        {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Delivering)}, canary, 1, 2},
		"a new namespace of a stage that it has reached":       {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Delivering)}, canary, 0, 2},
		"a new namespace of a later stage":                     {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Delivering)}, half, 0, 1},
		"a clone of the stable revision in a later stage":      {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Delivering)}, rest, 1, 1},
		"a clone of the candidate that moved to a later stage": {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Delivering)}, rest, 2, 2},
		"a clone of a superseded revision waits for its stage": {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Superseded), revision(3, delivery.Delivering)}, half, 2, 2},
		"a clone of a rejected revision goes back":             {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Rejected), revision(3, delivery.Delivering)}, half, 2, 1},
		"a superseded revision without a delivery under way":   {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Superseded)}, canary, 2, 1},
		"after a failure everything is stable":                 {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Rejected)}, canary, 2, 1},
		"a clone of a revision that is not kept any more":      {[]*delivery.Revision{revision(5, delivery.Delivered), revision(9, delivery.Delivering)}, rest, 3, 5},
		"a held candidate stays where it is":                   {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Held)}, canary, 2, 2},
		"a held candidate goes no further":                     {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Held)}, half, 1, 1},
		"a candidate in the last stage":                        {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Delivering, inStage("rest"))}, rest, 1, 2},
		"a stage that the configuration no longer has":         {[]*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Delivering, inStage("gone"))}, half, 1, 1},
		"somebody rolled back":                                 {[]*delivery.Revision{revision(1, delivery.Delivered, pinned), revision(2, delivery.Delivered)}, canary, 2, 1},
		"somebody rolled back while one is under way":          {[]*delivery.Revision{revision(1, delivery.Delivered, pinned), revision(2, delivery.Delivering)}, canary, 2, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := delivery.Assign(stagesOf(t, nil), delivery.NewHistory(test.history), test.stage, test.has)
			if test.want == 0 {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			require.Equal(t, test.want, got.Number)
		})
	}
}

func report(health mark.ConsumersHealth) delivery.Place {
	return delivery.Place{Namespace: "canary-1", Reached: true, Consumers: mark.ConsumersReport{Revision: 2, Health: health, Reason: "Deployment/web"}}
}

func TestWhatBecomesOfADelivery(t *testing.T) {
	const timeout, soak = 30 * time.Minute, 10 * time.Minute
	healthySince := func(after time.Duration) func(*delivery.Revision) {
		return func(r *delivery.Revision) { r.HealthySince = birth.Add(after) }
	}
	healthy, pending, unhealthy := report(mark.ConsumersHealthy), report(mark.ConsumersPending), report(mark.ConsumersUnhealthy)
	none := delivery.Place{Namespace: "canary-1", Reached: true, NoConsumers: true}
	unknown := delivery.Place{Namespace: "canary-1", Reached: true}
	behind := delivery.Place{Namespace: "canary-1"}
	atMost := func(unhealthy intstr.IntOrString) func(*spec.Delivery) {
		return func(d *spec.Delivery) { d.Gate.MaxUnhealthy = unhealthy }
	}
	approve := func(d *spec.Delivery) { d.Stages[0].Approval = true }
	for sentence, test := range map[string]struct {
		change    func(*spec.Delivery)
		candidate *delivery.Revision
		places    []delivery.Place
		after     time.Duration
		want      delivery.Outcome
		until     time.Duration
		reason    string
	}{
		"a clone is not written yet":                   {nil, revision(2, delivery.Delivering), []delivery.Place{healthy, behind}, 0, delivery.Wait, timeout, "canary-1 (no clone of it yet)"},
		"nobody has looked at the consumers yet":       {nil, revision(2, delivery.Delivering), []delivery.Place{unknown}, 0, delivery.Wait, timeout, "no report"},
		"a consumer waits for its window":              {nil, revision(2, delivery.Delivering), []delivery.Place{pending}, 0, delivery.Wait, timeout, "Deployment/web"},
		"the gate holds from now on":                   {nil, revision(2, delivery.Delivering), []delivery.Place{healthy, none}, time.Minute, delivery.GateHolds, time.Minute + soak, ""},
		"it soaks":                                     {nil, revision(2, delivery.Delivering, healthySince(time.Minute)), []delivery.Place{healthy}, 2 * time.Minute, delivery.Wait, time.Minute + soak, "soaking"},
		"it soaks, longer than the timeout":            {nil, revision(2, delivery.Delivering, healthySince(29*time.Minute)), []delivery.Place{healthy}, 31 * time.Minute, delivery.Wait, 39 * time.Minute, "soaking"},
		"the gate holds no longer":                     {nil, revision(2, delivery.Delivering, healthySince(time.Minute)), []delivery.Place{pending}, 2 * time.Minute, delivery.GateBroken, timeout, "Deployment/web"},
		"it has soaked":                                {nil, revision(2, delivery.Delivering, healthySince(0)), []delivery.Place{healthy}, soak, delivery.NextStage, 0, ""},
		"it has soaked, and waits for somebody":        {approve, revision(2, delivery.Delivering, healthySince(0)), []delivery.Place{healthy}, soak, delivery.Wait, 0, "headwater promote app"},
		"it waits for somebody for days":               {approve, revision(2, delivery.Delivering, healthySince(0)), []delivery.Place{healthy}, 99 * time.Hour, delivery.Wait, 0, "headwater promote app"},
		"somebody approved":                            {approve, revision(2, delivery.Delivering, healthySince(0), func(r *delivery.Revision) { r.Approved = "by jane" }), []delivery.Place{healthy}, soak, delivery.NextStage, 0, ""},
		"it is paused":                                 {nil, revision(2, delivery.Delivering, healthySince(0), func(r *delivery.Revision) { r.Paused = "by jane" }), []delivery.Place{healthy}, soak, delivery.Wait, 0, "paused by jane"},
		"it is paused, and would be too late":          {nil, revision(2, delivery.Delivering, func(r *delivery.Revision) { r.Paused = "by jane" }), []delivery.Place{pending}, timeout, delivery.Wait, 0, "Deployment/web"},
		"a stage without soak time passes at once":     {nil, revision(2, delivery.Delivering, inStage("half")), []delivery.Place{healthy}, 0, delivery.NextStage, 0, ""},
		"the last stage passes":                        {nil, revision(2, delivery.Delivering, inStage("rest")), []delivery.Place{healthy}, 0, delivery.Passed, 0, ""},
		"a stage without namespaces passes":            {nil, revision(2, delivery.Delivering, inStage("half")), nil, 0, delivery.NextStage, 0, ""},
		"a namespace is unhealthy":                     {nil, revision(2, delivery.Delivering), []delivery.Place{healthy, unhealthy}, 0, delivery.Failed, 0, "1 namespace unhealthy: canary-1 (Deployment/web)"},
		"it becomes unhealthy while it soaks":          {nil, revision(2, delivery.Delivering, healthySince(0)), []delivery.Place{unhealthy}, time.Minute, delivery.Failed, 0, "unhealthy"},
		"as many are unhealthy as may be":              {atMost(intstr.FromInt32(1)), revision(2, delivery.Delivering, inStage("half")), []delivery.Place{healthy, unhealthy}, 0, delivery.NextStage, 0, ""},
		"one more is unhealthy than may be":            {atMost(intstr.FromInt32(1)), revision(2, delivery.Delivering), []delivery.Place{unhealthy, unhealthy}, 0, delivery.Failed, 0, "2 namespaces unhealthy"},
		"half may be unhealthy, and half are":          {atMost(intstr.FromString("50%")), revision(2, delivery.Delivering, inStage("half")), []delivery.Place{healthy, unhealthy}, 0, delivery.NextStage, 0, ""},
		"half may be unhealthy, of one":                {atMost(intstr.FromString("50%")), revision(2, delivery.Delivering), []delivery.Place{unhealthy}, 0, delivery.Failed, 0, "1 namespace unhealthy"},
		"the gate does not hold in time":               {nil, revision(2, delivery.Delivering), []delivery.Place{pending}, timeout, delivery.Failed, 0, "timeout of stage canary: 1 namespace not ready"},
		"nothing is asked of consumers":                {func(d *spec.Delivery) { d.Gate.Consumers = spec.GateNone }, revision(2, delivery.Delivering, inStage("half")), []delivery.Place{unknown, unhealthy}, 0, delivery.NextStage, 0, ""},
		"consumers must only have it":                  {func(d *spec.Delivery) { d.Gate.Consumers = spec.GateRestarted }, revision(2, delivery.Delivering, inStage("half")), []delivery.Place{unhealthy}, 0, delivery.NextStage, 0, ""},
		"consumers must have it, and one does not":     {func(d *spec.Delivery) { d.Gate.Consumers = spec.GateRestarted }, revision(2, delivery.Delivering, inStage("half")), []delivery.Place{pending}, 0, delivery.Wait, timeout, "Deployment/web"},
		"the reasons of many namespaces are cut short": {nil, revision(2, delivery.Delivering), []delivery.Place{pending, pending, pending, pending}, 0, delivery.Wait, timeout, "and 1 more"},
	} {
		t.Run(sentence, func(t *testing.T) {
			step := delivery.Advance(stagesOf(t, test.change), test.candidate, test.places, birth.Add(test.after))
			require.Equal(t, test.want, step.Outcome)
			require.Contains(t, step.Reason, test.reason)
			if test.until == 0 {
				require.Zero(t, step.Until)
			} else {
				require.Equal(t, birth.Add(test.until), step.Until)
			}
		})
	}
}

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
	history := delivery.NewHistory([]*delivery.Revision{
		revision(1, delivery.Delivered), revision(2, delivery.Rejected), revision(3, delivery.Delivered), revision(4, delivery.Superseded), revision(5, delivery.Delivering),
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
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	verdicts := []delivery.Verdict{delivery.Delivered, delivery.Rejected, delivery.Superseded, delivery.Delivering, delivery.Held}
	for range 2000 {
		var all []*delivery.Revision
		for number := range dice.IntN(20) {
			one := revision(number+1, verdicts[dice.IntN(len(verdicts))])
			if dice.IntN(10) == 0 {
				pinned(one)
			}
			all = append(all, one)
		}
		history, keep := delivery.NewHistory(all), 2+dice.IntN(10)
		var current *delivery.Revision // the one with the source's content
		if len(history) > 0 {
			current = history[dice.IntN(len(history))]
		}
		surplus := history.Surplus(keep, current)
		require.LessOrEqual(t, len(history)-len(surplus), max(keep, 5))
		require.GreaterOrEqual(t, len(history)-len(surplus), min(keep, len(history)))
		for _, needed := range []*delivery.Revision{history.Stable(), history.Candidate(), history.Pinned(), history.Newest(), current} {
			if needed != nil {
				require.NotContains(t, surplus, needed)
			}
		}
	}
}

func TestAnEditIsRecordedWithAVerdict(t *testing.T) {
	stages := stagesOf(t, nil)
	edit := delivery.Edit{Rule: "app", Source: source, EditedBy: "kubectl", At: birth}
	for sentence, test := range map[string]struct {
		history []*delivery.Revision
		change  func(*delivery.Edit)
		stages  *spec.Stages
		want    delivery.Verdict
		stage   string
		number  int
	}{
		"the first has nothing to go back to":   {nil, nil, stages, delivery.Delivered, "", 1},
		"the first valid one, too":              {[]*delivery.Revision{revision(1, delivery.Rejected)}, nil, stages, delivery.Delivered, "", 2},
		"the next one starts with the first":    {[]*delivery.Revision{revision(1, delivery.Delivered)}, nil, stages, delivery.Delivering, "canary", 2},
		"a leaked credential goes everywhere":   {[]*delivery.Revision{revision(1, delivery.Delivered)}, func(e *delivery.Edit) { e.AllAtOnce = true }, stages, delivery.Delivering, "rest", 2},
		"what is not valid is never delivered":  {[]*delivery.Revision{revision(1, delivery.Delivered)}, func(e *delivery.Edit) { e.Invalid = "no YAML" }, stages, delivery.Rejected, "", 2},
		"a rule without stages follows it":      {[]*delivery.Revision{revision(4, delivery.Delivered)}, nil, nil, delivery.Delivered, "", 5},
		"numbers go on after what was rejected": {[]*delivery.Revision{revision(1, delivery.Delivered), revision(7, delivery.Rejected)}, nil, stages, delivery.Delivering, "canary", 8},
	} {
		t.Run(sentence, func(t *testing.T) {
			edited := edit
			if test.change != nil {
				test.change(&edited)
			}
			next := delivery.Next(delivery.NewHistory(test.history), edited, test.stages)
			require.Equal(t, test.want, next.Verdict)
			require.Equal(t, test.stage, next.Stage)
			require.Equal(t, test.number, next.Number)
			require.Equal(t, edited.Invalid, next.Reason)
		})
	}
}

func TestWhatAPersonMayAsk(t *testing.T) {
	history := func() []*delivery.Revision {
		return []*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Rejected), revision(3, delivery.Delivered), revision(4, delivery.Delivering, inStage("half"))}
	}
	now := birth.Add(time.Hour)
	for sentence, test := range map[string]struct {
		request delivery.Request
		history []*delivery.Revision
		want    map[int]delivery.Verdict
		refused string
	}{
		"promote the candidate":                  {delivery.Request{Verb: delivery.Promote, Revision: 4}, history(), map[int]delivery.Verdict{4: delivery.Delivering}, ""},
		"promote what is no longer under way":    {delivery.Request{Verb: delivery.Promote, Revision: 3}, history(), nil, "revision 3 is Delivered, so there is nothing to promote"},
		"pause the candidate":                    {delivery.Request{Verb: delivery.Pause, Revision: 4}, history(), map[int]delivery.Verdict{4: delivery.Delivering}, ""},
		"resume what is not paused":              {delivery.Request{Verb: delivery.Resume, Revision: 4}, history(), nil, "revision 4 is Delivering, so there is nothing to resume"},
		"roll the candidate back":                {delivery.Request{Verb: delivery.Rollback, Revision: 4}, history(), map[int]delivery.Verdict{4: delivery.Rejected}, ""},
		"go back to an older revision":           {delivery.Request{Verb: delivery.Rollback, To: 1}, history(), map[int]delivery.Verdict{1: delivery.Delivered, 4: delivery.Rejected}, ""},
		"go back to one that is not kept":        {delivery.Request{Verb: delivery.Rollback, To: 9}, history(), nil, "revision 9 is not kept"},
		"retry what was rejected last":           {delivery.Request{Verb: delivery.Retry, Revision: 2}, history()[:2], map[int]delivery.Verdict{2: delivery.Delivering}, ""},
		"retry what was rejected long ago":       {delivery.Request{Verb: delivery.Retry, Revision: 2}, history(), nil, "revision 2 is Rejected"},
		"retry what a rollback rejected":         {delivery.Request{Verb: delivery.Retry, Revision: 2}, []*delivery.Revision{revision(1, delivery.Delivered, pinned), revision(2, delivery.Rejected)}, map[int]delivery.Verdict{1: delivery.Delivered, 2: delivery.Delivering}, ""},
		"retry it again after one write failed":  {delivery.Request{Verb: delivery.Retry, Revision: 2}, []*delivery.Revision{revision(1, delivery.Delivered, pinned), revision(2, delivery.Delivering)}, map[int]delivery.Verdict{1: delivery.Delivered, 2: delivery.Delivering}, ""},
		"go on with what is held":                {delivery.Request{Verb: delivery.Retry, Revision: 2}, []*delivery.Revision{revision(1, delivery.Delivered), revision(2, delivery.Held)}, map[int]delivery.Verdict{2: delivery.Delivering}, ""},
		"end the rollback to an older revision":  {delivery.Request{Verb: delivery.Resume, Revision: 1}, []*delivery.Revision{revision(1, delivery.Delivered, pinned), revision(2, delivery.Delivered)}, map[int]delivery.Verdict{1: delivery.Delivered}, ""},
		"go back from one older one to another":  {delivery.Request{Verb: delivery.Rollback, To: 2}, []*delivery.Revision{revision(1, delivery.Delivered, pinned), revision(2, delivery.Delivered)}, map[int]delivery.Verdict{1: delivery.Delivered, 2: delivery.Delivered}, ""},
		"roll back what failed meanwhile":        {delivery.Request{Verb: delivery.Rollback, Revision: 2}, history(), nil, "revision 2 is Rejected, so there is nothing to rollback"},
		"go back to what was rejected":           {delivery.Request{Verb: delivery.Rollback, To: 2}, history(), nil, "revision 2 was rejected"},
		"a verb that this version does not know": {delivery.Request{Verb: "hasten", Revision: 4}, history(), nil, "nothing to hasten"},
	} {
		t.Run(sentence, func(t *testing.T) {
			test.request.By, test.request.At = "jane", now
			changed, err := test.request.Apply(stagesOf(t, nil), delivery.NewHistory(test.history), nil, now)
			if test.refused != "" {
				require.ErrorContains(t, err, test.refused)
				require.Empty(t, changed)
				return
			}
			require.NoError(t, err)
			if to := test.request.To; to != 0 {
				require.Equal(t, to, changed[0].Number, "the clones must not go by way of another one")
			}
			got := map[int]delivery.Verdict{}
			for _, one := range changed {
				got[one.Number] = one.Verdict
				require.Equal(t, test.request.To == one.Number, one.Pinned != "", "revision %d", one.Number)
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestHowLongARollbackLasts(t *testing.T) {
	over := func(number int) func(*delivery.Revision) {
		return func(r *delivery.Revision) { r.Pinned, r.PinnedOver = "by jane", number }
	}
	for sentence, test := range map[string]struct {
		history []*delivery.Revision
		current int
		ends    bool
	}{
		"the source is as it was":                   {[]*delivery.Revision{revision(1, delivery.Delivered, over(2)), revision(2, delivery.Delivered)}, 2, false},
		"the source has what the rollback rejected": {[]*delivery.Revision{revision(1, delivery.Delivered, over(3)), revision(2, delivery.Delivered), revision(3, delivery.Rejected)}, 3, false},
		"it was edited back to what was delivered":  {[]*delivery.Revision{revision(1, delivery.Delivered, over(3)), revision(2, delivery.Delivered), revision(3, delivery.Rejected)}, 2, true},
		"it was edited, and is not valid":           {[]*delivery.Revision{revision(1, delivery.Delivered, over(2)), revision(2, delivery.Delivered), revision(3, delivery.Rejected)}, 3, false},
		"it was edited, of a rule without stages":   {[]*delivery.Revision{revision(1, delivery.Delivered, over(2)), revision(2, delivery.Delivered), revision(3, delivery.Delivered)}, 3, true},
		"another revision is under way":             {[]*delivery.Revision{revision(1, delivery.Delivered, over(2)), revision(2, delivery.Delivered), revision(3, delivery.Delivering)}, 3, true},
		"what it rejected still seems under way":    {[]*delivery.Revision{revision(1, delivery.Delivered, over(3)), revision(2, delivery.Delivered), revision(3, delivery.Delivering)}, 3, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			history := delivery.NewHistory(test.history)
			require.Equal(t, test.ends, history.EndsRollback(history.Numbered(test.current)))
		})
	}
}
