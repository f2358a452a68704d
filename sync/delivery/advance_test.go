package delivery_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

var errUnread = errors.New("version 2 is not known")

// place is a namespace whose clone was judged.
var place = delivery.Place{Namespace: "canary-1", Reached: true, Version: "90"}

// ran is a canary of one namespace in which one consumer ran the revision.
var ran = revisions.StageEvidence{Name: "canary", Ran: 1, Namespaces: 1, Proven: 1}

// Invariants D10 and D13: only what this process confirmed, in numbers, lets a gate hold.
func TestHowAGateStands(t *testing.T) {
	with := func(change ...func(*revisions.Revision)) *revisions.Revision {
		return revision(2, revisions.Delivering, change...)
	}
	readers := func(all int) func(*revisions.Revision) {
		return func(r *revisions.Revision) { r.Evidence.Readers = all }
	}
	by := func(other string) func(*revisions.Revision) {
		return func(r *revisions.Revision) { r.Evidence.By = other }
	}
	canary := func(e revisions.StageEvidence) func(*revisions.Revision) { e.Name = "canary"; return seen(e) }
	half := func(e revisions.StageEvidence) func(*revisions.Revision) { e.Name = "half"; return seen(e) }
	waived := func(stage string) func(*revisions.Revision) {
		return func(r *revisions.Revision) { r.Unproven = map[string]string{stage: "by jane"} }
	}
	gate := func(change func(*stages.Gate)) func(*stages.Delivery) {
		return func(d *stages.Delivery) { change(&d.Gate) }
	}
	most := func(unhealthy intstr.IntOrString) func(*stages.Delivery) {
		return gate(func(g *stages.Gate) { g.MaxUnhealthy = &unhealthy })
	}
	none := gate(func(g *stages.Gate) { g.Consumers = stages.GateNone })
	restarted := gate(func(g *stages.Gate) { g.Consumers = stages.GateRestarted })
	two := gate(func(g *stages.Gate) { g.Evidence = new(2) })
	restart := func(d *stages.Delivery) { d.Stages[0].Restart = true }
	crowd := func(r *revisions.Revision) { r.Evidence.Failing = make([]string, revisions.MaxFailing+1) }
	here, behind, newer := []delivery.Place{place}, []delivery.Place{place, {Namespace: "canary-2"}}, []delivery.Place{{Namespace: "canary-1", Reached: true, Version: "101"}}
	for sentence, test := range map[string]struct {
		change    func(*stages.Delivery)
		candidate *revisions.Revision
		places    []delivery.Place
		want      delivery.State
		reason    string
	}{
		"a consumer ran it":                                {nil, with(seen(ran)), here, delivery.Holding, ""},
		"a consumer was refreshed":                         {nil, with(canary(revisions.StageEvidence{Refreshed: 1, Namespaces: 1, Proven: 1})), here, delivery.Holding, ""},
		"a refresh proves no start":                        {restart, with(canary(revisions.StageEvidence{Refreshed: 1, Namespaces: 1, Proven: 1})), here, delivery.Lacking, "no evidence: 0 of 1 consumer"},
		"a clone is not written yet":                       {nil, with(seen(ran)), behind, delivery.Lacking, "1 namespace without a clone of it: canary-2"},
		"a clone cannot be written, and why":               {nil, with(seen(ran)), []delivery.Place{{Namespace: "canary-2", Why: "exceeded quota"}}, delivery.Lacking, "1 namespace without a clone of it: canary-2 (exceeded quota)"},
		"a clone is not written, and a consumer fails":     {nil, with(canary(revisions.StageEvidence{Namespaces: 1, Failed: 1, Unhealthy: 1})), behind, delivery.Failing, "1 namespace unhealthy"},
		"a clone is not written, and one is waited for":    {nil, with(canary(revisions.StageEvidence{Namespaces: 1, Waiting: 1, Unhealthy: 1})), behind, delivery.Waiting, "waits for 1 consumer"},
		"a clone is not written, and nothing is confirmed": {nil, with(seen(ran), by("that")), behind, delivery.Lacking, "1 namespace without a clone of it"},
		"a stage is not open, and the one before fails":    {nil, with(inStage("half"), canary(revisions.StageEvidence{Namespaces: 1, Failed: 1, Unhealthy: 1}), func(r *revisions.Revision) { r.Evidence.Look = "canary" }), here, delivery.Failing, "1 namespace unhealthy"},
		"more fail than the record names, in few of many":  {most(intstr.FromString("50%")), with(canary(revisions.StageEvidence{Ran: 9000, Namespaces: 10000, Proven: 9000, Failed: 1000, Unhealthy: 1000}), crowd), here, delivery.Failing, "more than 1000 consumers fail"},
		"the stage is not open":                            {nil, with(seen(ran), func(r *revisions.Revision) { r.Evidence.Look = "" }), here, delivery.Lacking, "stage canary opens once"},
		"another process judged":                           {nil, with(seen(ran), by("that")), here, delivery.Unconfirmed, "has not looked"},
		"nobody judged":                                    {nil, with(seen(ran), by("")), here, delivery.Unconfirmed, "has not looked"},
		"a clone was written since":                        {nil, with(seen(ran)), newer, delivery.Unconfirmed, "has not looked"},
		"no clone was judged":                              {nil, with(seen(ran), func(r *revisions.Revision) { r.Evidence.UpTo = "" }), here, delivery.Unconfirmed, "has not looked"},
		"nobody can read the evidence":                     {nil, with(seen(ran), func(r *revisions.Revision) { r.EvidenceUnread = errUnread }), here, delivery.Unconfirmed, "version 2 is not known"},
		"no namespace, and a reader elsewhere":             {nil, with(), nil, delivery.Lacking, "no evidence: 0 of 1 consumer that read what changed have run it"},
		"no namespace, and readers were not counted yet":   {nil, with(readers(0), func(r *revisions.Revision) { r.Evidence.UpTo = "" }), nil, delivery.Unconfirmed, "has not looked"},
		"only idle readers":                                {nil, with(canary(revisions.StageEvidence{})), here, delivery.Lacking, "no evidence"},
		"nobody reads what changed":                        {nil, with(readers(0)), here, delivery.Holding, ""},
		"less evidence than is asked for":                  {two, with(readers(5), seen(ran)), here, delivery.Lacking, "1 of 5 consumers that read what changed have run it; it takes 2"},
		"fewer readers than evidence that is asked for":    {two, with(seen(ran)), here, delivery.Holding, ""},
		"evidence of the stages before counts":             {two, with(inStage("half"), readers(5), seen(ran), half(revisions.StageEvidence{Ran: 1, Namespaces: 1, Proven: 1})), here, delivery.Holding, ""},
		"a stage with readers none of which gave evidence": {nil, with(inStage("half"), readers(5), seen(ran), half(revisions.StageEvidence{Namespaces: 200, Unhealthy: 2})), here, delivery.Lacking, "no consumer in stage half has run it"},
		"a stage without readers after one with evidence":  {nil, with(inStage("half"), readers(5), seen(ran), half(revisions.StageEvidence{})), here, delivery.Holding, ""},
		"evidence of a stage that was not reached":         {nil, with(half(revisions.StageEvidence{Ran: 1, Namespaces: 1, Proven: 1})), here, delivery.Lacking, "no evidence"},
		"somebody waived the evidence of the stage":        {nil, with(canary(revisions.StageEvidence{}), waived("canary")), here, delivery.Holding, ""},
		"somebody waived the evidence of another stage":    {nil, with(canary(revisions.StageEvidence{}), waived("half")), here, delivery.Lacking, "no evidence"},
		"a waived stage does not prove the next":           {nil, with(inStage("half"), waived("canary"), canary(revisions.StageEvidence{Namespaces: 1}), half(revisions.StageEvidence{})), here, delivery.Lacking, "no evidence: 0 of"},
		"a consumer is waited for":                         {nil, with(canary(revisions.StageEvidence{Namespaces: 1, Waiting: 1, Unhealthy: 1})), here, delivery.Waiting, "waits for 1 consumer"},
		"one ran it, another is waited for":                {nil, with(canary(revisions.StageEvidence{Namespaces: 1, Ran: 1, Proven: 1, Waiting: 1, Unhealthy: 1})), here, delivery.Waiting, ""},
		"Headwater's own pace is waited for":               {nil, with(canary(revisions.StageEvidence{Namespaces: 1, Waiting: 2, Paced: 2, Unhealthy: 1})), here, delivery.Paced, ""},
		"somebody's own rollout is waited for":             {nil, with(canary(revisions.StageEvidence{Namespaces: 1, Waiting: 2, Paced: 1, Unclear: 1, Unhealthy: 1})), here, delivery.Waiting, ""},
		"a consumer fails":                                 {nil, with(canary(revisions.StageEvidence{Namespaces: 1, Failed: 1, Unhealthy: 1})), here, delivery.Failing, "1 namespace unhealthy"},
		"it fails in the stage before":                     {nil, with(inStage("half"), canary(revisions.StageEvidence{Namespaces: 1, Failed: 1, Unhealthy: 1}), half(revisions.StageEvidence{Ran: 1, Namespaces: 1, Proven: 1})), here, delivery.Failing, "1 namespace unhealthy"},
		"as many fail as may, and one ran it":              {most(intstr.FromInt32(1)), with(canary(revisions.StageEvidence{Namespaces: 2, Ran: 1, Proven: 1, Failed: 1, Unhealthy: 1})), here, delivery.Holding, ""},
		"as many wait as may":                              {most(intstr.FromInt32(1)), with(canary(revisions.StageEvidence{Namespaces: 2, Ran: 1, Proven: 1, Waiting: 1, Unhealthy: 1})), here, delivery.Holding, ""},
		"all may fail, and nobody ran it":                  {most(intstr.FromInt32(1)), with(canary(revisions.StageEvidence{Namespaces: 1, Failed: 1, Unhealthy: 1})), here, delivery.Lacking, "no evidence"},
		"one more fails than may":                          {most(intstr.FromInt32(1)), with(canary(revisions.StageEvidence{Namespaces: 9, Ran: 7, Proven: 7, Failed: 2, Unhealthy: 2})), here, delivery.Failing, "2 namespaces unhealthy"},
		"by default one of a hundred may fail":             {nil, with(canary(revisions.StageEvidence{Namespaces: 100, Ran: 99, Proven: 99, Failed: 1, Unhealthy: 1})), here, delivery.Holding, ""},
		"by default one of ninety-nine may not":            {nil, with(canary(revisions.StageEvidence{Namespaces: 99, Ran: 98, Proven: 98, Failed: 1, Unhealthy: 1})), here, delivery.Failing, ""},
		"half may be unhealthy, of one":                    {most(intstr.FromString("50%")), with(canary(revisions.StageEvidence{Namespaces: 1, Failed: 1, Unhealthy: 1})), here, delivery.Failing, ""},
		"nothing is asked of consumers":                    {none, with(unopened, canary(revisions.StageEvidence{Namespaces: 1, Failed: 1, Unhealthy: 1})), here, delivery.Holding, ""},
		"nothing is asked of consumers, but a clone":       {none, with(unopened), behind, delivery.Lacking, "without a clone"},
		"consumers must only have it":                      {restarted, with(canary(revisions.StageEvidence{Namespaces: 1, Ran: 1, Proven: 1, Failed: 1})), here, delivery.Holding, ""},
		"AllAtOnce that nobody looked at":                  {nil, with(inStage("rest"), func(r *revisions.Revision) { r.AllAtOnce, r.Passed, r.Evidence.Look = true, nil, "" }, seen(ran)), here, delivery.Lacking, "stage rest opens once"},
		"AllAtOnce":                                        {nil, with(inStage("rest"), func(r *revisions.Revision) { r.AllAtOnce, r.Passed = true, nil }, seen(ran)), here, delivery.Holding, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := delivery.Judge(stagesOf(t, test.change), test.candidate, test.places, process)
			require.Equal(t, test.want, got.State, got.Reason)
			require.Contains(t, got.Reason, test.reason)
			require.Equal(t, test.want == delivery.Holding, got.Reason == "")
		})
	}
}

func TestWhatBecomesOfADelivery(t *testing.T) {
	const timeout, soak = 30 * time.Minute, 10 * time.Minute
	soaked := func(d time.Duration) func(*revisions.Revision) { return func(r *revisions.Revision) { r.Soaked = d } }
	waited := func(d time.Duration) func(*revisions.Revision) { return func(r *revisions.Revision) { r.Waited = d } }
	lacked := func(d time.Duration) func(*revisions.Revision) { return func(r *revisions.Revision) { r.Lacked = d } }
	paused := func(r *revisions.Revision) { r.Paused = "by jane" }
	with := func(change ...func(*revisions.Revision)) *revisions.Revision {
		return revision(2, revisions.Delivering, change...)
	}
	approve := func(d *stages.Delivery) { d.Stages[0].Approval, d.Rest.Approval = true, true }
	holding, waiting, paced := delivery.Judged{State: delivery.Holding}, delivery.Judged{State: delivery.Waiting, Reason: "waits for 1 consumer"}, delivery.Judged{State: delivery.Paced, Reason: "waits for 1 consumer"}
	unclear, lacking := delivery.Judged{State: delivery.Waiting, Reason: "waits for 1 consumer", Unclear: true}, delivery.Judged{State: delivery.Lacking, Reason: "no evidence"}
	unconfirmed, failing := delivery.Judged{State: delivery.Unconfirmed, Reason: "has not looked"}, delivery.Judged{State: delivery.Failing, Reason: "1 namespace unhealthy"}
	for sentence, test := range map[string]struct {
		change    func(*stages.Delivery)
		candidate *revisions.Revision
		judged    delivery.Judged
		want      delivery.Outcome
		left      time.Duration
		reason    string
	}{
		"it begins to soak": {nil, with(), holding, delivery.Wait, soak, "healthy for 0s of 10m0s"},
		"it soaks":          {nil, with(soaked(4 * time.Minute)), holding, delivery.Wait, 6 * time.Minute, "healthy for 4m0s of 10m0s"},
		"it has soaked":     {nil, with(soaked(soak)), holding, delivery.NextStage, 0, ""},
		"it has soaked, and nobody knows how it does now": {nil, with(soaked(soak)), unconfirmed, delivery.Wait, 0, "has not looked"},
		"it has soaked, and waits again":                  {nil, with(soaked(soak)), waiting, delivery.Wait, timeout, "waits for"},
		"it has soaked, and waits for somebody":           {approve, with(soaked(soak)), holding, delivery.AwaitsApproval, 0, "headwater promote app"},
		"that was told":                                   {approve, with(soaked(soak), func(r *revisions.Revision) { r.Reason = "stage canary passed; waits for `headwater promote app`" }), holding, delivery.Wait, 0, "headwater promote app"},
		"somebody approved":                               {approve, with(soaked(soak), func(r *revisions.Revision) { r.Approved = "by jane" }), holding, delivery.NextStage, 0, ""},
		"somebody approved too early":                     {approve, with(func(r *revisions.Revision) { r.Approved = "by jane" }), lacking, delivery.Wait, timeout, "no evidence"},
		"it is paused":                                    {nil, with(soaked(soak), paused), holding, delivery.Wait, 0, "paused by jane"},
		"it is paused, and would be too late":             {nil, with(waited(timeout), paused), waiting, delivery.Wait, 0, "paused by jane"},
		"it is paused, and fails":                         {nil, with(paused), failing, delivery.Failed, 0, "unhealthy"},
		"a stage without soak time passes at once":        {nil, with(inStage("half")), holding, delivery.NextStage, 0, ""},
		"the last stage passes":                           {nil, with(inStage("rest")), holding, delivery.Passed, 0, ""},
		"the last stage waits for somebody":               {approve, with(inStage("rest")), holding, delivery.AwaitsApproval, 0, "promote"},
		"consumers fail":                                  {nil, with(), failing, delivery.Failed, 0, "1 namespace unhealthy"},
		"a consumer is too late":                          {nil, with(waited(timeout)), waiting, delivery.Failed, 0, "timeout after 30m0s of waiting: waits for 1 consumer"},
		"it may be late for another reason":               {nil, with(waited(timeout)), unclear, delivery.Unclear, 0, "the cause is unclear"},
		"Headwater's own pace is never too late":          {nil, with(waited(9 * timeout)), paced, delivery.Wait, 0, "waits for"},
		"no evidence for that long":                       {nil, with(lacked(timeout - 1)), lacking, delivery.Wait, 1, "no evidence"},
		"no evidence, which was told":                     {nil, with(lacked(timeout)), lacking, delivery.Wait, 0, "no evidence"},
		"no evidence for longer than a shorter timeout":   {nil, with(lacked(timeout + 1)), lacking, delivery.NoEvidence, 0, "no evidence"},
		"evidence comes after all":                        {nil, with(lacked(9*timeout), soaked(soak)), holding, delivery.NextStage, 0, ""},
		"a reader comes after all":                        {nil, with(lacked(9 * timeout)), waiting, delivery.Wait, timeout, "waits for"},
		"a stage was put before it":                       {nil, with(inStage("rest"), func(r *revisions.Revision) { r.Passed = []string{"canary"} }), failing, delivery.Moved, 0, ""},
		"its stage is no longer there":                    {nil, with(inStage("gone")), holding, delivery.Moved, 0, ""},
		"an earlier version passed the stages before it":  {nil, with(inStage("rest"), func(r *revisions.Revision) { r.Passed, r.Legacy = nil, true }), holding, delivery.Passed, 0, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			step := delivery.Advance(stagesOf(t, test.change), test.candidate, test.judged, nil, 0)
			require.Equal(t, test.want, step.Outcome, step.Reason)
			require.Contains(t, step.Reason, test.reason)
			require.Equal(t, test.left, step.Left)
		})
	}
}

// Invariants D11 and D14: only time that this process observed counts, and for what it was
// spent with.
func TestWhichTimeCounts(t *testing.T) {
	state := func(s delivery.State, fails ...string) delivery.Judged {
		return delivery.Judged{State: s, Fails: fails}
	}
	had := delivery.Sums{Soaked: 3 * time.Minute, Waited: 5 * time.Minute, Lacked: 7 * time.Minute}
	const more = time.Minute
	for sentence, test := range map[string]struct {
		before *delivery.Judged
		now    delivery.Judged
		paused bool
		want   delivery.Sums
	}{
		"it held all the time":                     {new(state(delivery.Holding)), state(delivery.Holding), false, delivery.Sums{Soaked: 4 * time.Minute, Waited: 5 * time.Minute, Lacked: 7 * time.Minute}},
		"nobody looked before":                     {nil, state(delivery.Holding), false, had},
		"it holds from now on":                     {new(state(delivery.Waiting)), state(delivery.Holding), false, delivery.Sums{Soaked: 3 * time.Minute, Waited: 6 * time.Minute, Lacked: 7 * time.Minute}},
		"it held until now":                        {new(state(delivery.Holding)), state(delivery.Waiting), false, had},
		"it is not known any more":                 {new(state(delivery.Holding)), state(delivery.Unconfirmed), false, had},
		"it was not known":                         {new(state(delivery.Unconfirmed)), state(delivery.Holding), false, had},
		"it waited for Headwater's own pace":       {new(state(delivery.Paced)), state(delivery.Paced), false, had},
		"it waited for evidence":                   {new(state(delivery.Lacking)), state(delivery.Lacking), false, delivery.Sums{Soaked: 3 * time.Minute, Waited: 5 * time.Minute, Lacked: 8 * time.Minute}},
		"a pause does not time out":                {new(state(delivery.Waiting)), state(delivery.Waiting), true, had},
		"a tolerated failure begins":               {new(state(delivery.Holding)), state(delivery.Holding, "team-1/Deployment/web"), false, delivery.Sums{Waited: 5 * time.Minute, Lacked: 7 * time.Minute}},
		"a tolerated failure goes on":              {new(state(delivery.Holding, "x")), state(delivery.Holding, "x"), false, delivery.Sums{Soaked: 4 * time.Minute, Waited: 5 * time.Minute, Lacked: 7 * time.Minute}},
		"a failing consumer leaves":                {new(state(delivery.Holding, "x")), state(delivery.Holding), false, delivery.Sums{Waited: 5 * time.Minute, Lacked: 7 * time.Minute}},
		"another process sees a tolerated failure": {nil, state(delivery.Holding, "x"), false, delivery.Sums{Waited: 5 * time.Minute, Lacked: 7 * time.Minute}},
	} {
		t.Run(sentence, func(t *testing.T) {
			candidate := revision(2, revisions.Delivering, func(r *revisions.Revision) {
				r.Soaked, r.Waited, r.Lacked = had.Soaked, had.Waited, had.Lacked
				if test.paused {
					r.Paused = "by jane"
				}
			})
			var before *delivery.Observation
			if test.before != nil {
				before = &delivery.Observation{Judged: *test.before, Sums: had}
			}
			require.Equal(t, test.want, delivery.Advance(stagesOf(t, nil), candidate, test.now, before, more).Sums)
		})
	}
}

func TestWhatAStepRecords(t *testing.T) {
	now := birth.Add(time.Hour)
	in := stagesOf(t, nil)
	apply := func(candidate *revisions.Revision, step delivery.Step, onFailure stages.OnFailure) (revisions.Revision, bool) {
		return delivery.Apply(in, *candidate, step, onFailure, now)
	}
	candidate := revision(2, revisions.Delivering, func(r *revisions.Revision) { r.Soaked, r.Approved = 10*time.Minute, "by jane" })

	next, told := apply(candidate, delivery.Step{Outcome: delivery.NextStage}, stages.Rollback)
	require.True(t, told)
	require.Equal(t, []string{"canary"}, next.Passed)
	require.Equal(t, "half", next.Stage)
	require.Zero(t, next.Soaked)
	require.Empty(t, next.Approved, "an approval is for one stage")

	failed := delivery.Step{Outcome: delivery.Failed, Observation: delivery.Observation{Judged: delivery.Judged{Reason: "too bad"}}}
	next, _ = apply(candidate, failed, stages.Rollback)
	require.Equal(t, revisions.Rejected, next.Verdict)
	next, _ = apply(candidate, failed, stages.Hold)
	require.Equal(t, revisions.Held, next.Verdict)
	next, _ = apply(revision(2, revisions.Delivering, func(r *revisions.Revision) { r.Legacy = true }), failed, stages.Rollback)
	require.Equal(t, revisions.Held, next.Verdict, "nobody looked before an earlier version began it")

	unclear := failed
	unclear.Outcome = delivery.Unclear
	next, _ = apply(candidate, unclear, stages.Rollback)
	require.Equal(t, revisions.Held, next.Verdict)

	seconds := func(soaked time.Duration) delivery.Step {
		return delivery.Step{Outcome: delivery.Wait, Observation: delivery.Observation{Sums: delivery.Sums{Soaked: soaked}}}
	}
	next, told = apply(candidate, seconds(10*time.Minute+59*time.Second), stages.Rollback)
	require.False(t, told)
	require.Equal(t, 10*time.Minute, next.Soaked, "a sum is written once a minute")
	next, _ = apply(candidate, seconds(11*time.Minute), stages.Rollback)
	require.Equal(t, 11*time.Minute, next.Soaked)
	next, _ = apply(candidate, seconds(0), stages.Rollback)
	require.Zero(t, next.Soaked, "a sum that was set back is written at once")
}

func TestASumThatHasAllItTakesGrowsNoFurther(t *testing.T) {
	in := stagesOf(t, nil)
	for state, want := range map[delivery.State]delivery.Sums{
		delivery.Holding: {Soaked: 10 * time.Minute, Lacked: time.Minute},
		delivery.Lacking: {Soaked: 9 * time.Minute, Lacked: 30 * time.Minute},
	} {
		candidate, judged := revision(2, revisions.Delivering), delivery.Judged{State: state}
		before := &delivery.Observation{Judged: judged, Sums: delivery.Sums{Soaked: 9 * time.Minute, Lacked: time.Minute}}
		require.Equal(t, want, delivery.Advance(in, candidate, judged, before, time.Hour).Sums, state)
	}
}
