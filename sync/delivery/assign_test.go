package delivery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

func TestWhichRevisionANamespaceGets(t *testing.T) {
	const canary, half, rest = 0, 1, 2
	fails := func(consumer string) func(*revisions.Revision) {
		return func(r *revisions.Revision) { r.Evidence.Failing = []string{consumer} }
	}
	broken := func(namespace string) func(*revisions.Revision) {
		return func(r *revisions.Revision) { r.Evidence.Broken = []string{namespace} }
	}
	stable, bad := revision(1, revisions.Delivered), revision(2, revisions.Rejected)
	candidate := func(change ...func(*revisions.Revision)) []*revisions.Revision {
		return []*revisions.Revision{stable, revision(2, revisions.Delivering, change...)}
	}
	superseded := func(change ...func(*revisions.Revision)) []*revisions.Revision {
		return []*revisions.Revision{stable, revision(2, revisions.Superseded, change...), revision(3, revisions.Delivering)}
	}
	allAtOnce := func(r *revisions.Revision) { r.AllAtOnce, r.Passed = true, nil }
	crowded := func(r *revisions.Revision) {
		r.Evidence.Causes = []revisions.Cause{{Consumer: "1200 consumers", Reason: revisions.ReasonCrowd}}
	}
	inNoStage := func(r *revisions.Revision) { r.Stage, r.Passed = "", nil }
	for sentence, test := range map[string]struct {
		history    []*revisions.Revision
		stage, has int
		want       int // 0: none
	}{
		"nothing is recorded yet":                                          {nil, canary, 0, 0},
		"the only revision, which was delivered at once":                   {[]*revisions.Revision{stable}, rest, 0, 1},
		"the only revision, which was rejected":                            {[]*revisions.Revision{revision(1, revisions.Rejected)}, rest, 0, 0},
		"the candidate, in a stage that is open":                           {candidate(), canary, 1, 2},
		"the candidate, in a stage that nobody looked at":                  {candidate(unopened), canary, 1, 1},
		"a new namespace of a stage that nobody looked at":                 {candidate(unopened), canary, 0, 1},
		"the candidate, with a look at another stage":                      {candidate(inStage("half"), func(r *revisions.Revision) { r.Evidence.Look = "canary" }), half, 1, 1},
		"the candidate, with evidence that nobody can read":                {candidate(func(r *revisions.Revision) { r.EvidenceUnread = errUnread }), canary, 1, 1},
		"a stage that passed needs no look any more":                       {candidate(inStage("half"), unopened), canary, 1, 2},
		"AllAtOnce waits for a look":                                       {candidate(inStage("rest"), unopened, allAtOnce), canary, 1, 1},
		"AllAtOnce does not wait until few enough fail":                    {candidate(inStage("rest"), unopened, allAtOnce, crowded), canary, 1, 2},
		"a stage waits for that":                                           {candidate(unopened, crowded), canary, 1, 1},
		"AllAtOnce, once somebody looked":                                  {candidate(inStage("rest"), allAtOnce), canary, 1, 2},
		"a new namespace of an open stage":                                 {candidate(), canary, 0, 2},
		"a new namespace of a later stage":                                 {candidate(), half, 0, 1},
		"a clone of the stable revision in a later stage":                  {candidate(), rest, 1, 1},
		"a clone of the candidate that moved to a later stage":             {candidate(), rest, 2, 2},
		"a stage that was inserted before the present one":                 {candidate(inStage("rest"), func(r *revisions.Revision) { r.Passed = []string{"canary"} }), half, 1, 1},
		"a stage that an earlier version passed":                           {candidate(inStage("rest"), func(r *revisions.Revision) { r.Passed, r.Legacy = nil, true }), half, 1, 2},
		"a clone of a superseded revision waits for its stage":             {superseded(), half, 2, 2},
		"where a superseded revision failed it goes back":                  {superseded(fails("team-1/Deployment/web")), half, 2, 1},
		"where another namespace failed with it, it does not":              {superseded(fails("team-10/Deployment/web")), half, 2, 2},
		"where it fails without counting against it, it goes back":         {superseded(broken("team-1")), half, 2, 1},
		"where it does elsewhere, it does not":                             {superseded(broken("team-10")), half, 2, 2},
		"a clone of a rejected revision goes back":                         {[]*revisions.Revision{stable, bad, revision(3, revisions.Delivering)}, half, 2, 1},
		"a superseded revision without a delivery under way":               {[]*revisions.Revision{stable, revision(2, revisions.Superseded)}, canary, 2, 1},
		"after a failure everything is stable":                             {[]*revisions.Revision{stable, bad}, canary, 2, 1},
		"a clone of a revision that is not kept, or of no content of ours": {[]*revisions.Revision{revision(5, revisions.Delivered), revision(9, revisions.Delivering)}, rest, 3, 5},
		"a held candidate stays where it is":                               {[]*revisions.Revision{stable, revision(2, revisions.Held)}, canary, 2, 2},
		"a held candidate goes no further":                                 {[]*revisions.Revision{stable, revision(2, revisions.Held)}, half, 1, 1},
		"a held candidate that came to no stage":                           {[]*revisions.Revision{stable, revision(2, revisions.Held, inNoStage)}, canary, 1, 1},
		"one that skips the stages then":                                   {[]*revisions.Revision{stable, revision(2, revisions.Held, inNoStage, allAtOnce)}, canary, 1, 1},
		"a candidate in the last stage":                                    {candidate(inStage("rest")), rest, 1, 2},
		"a stage that the configuration no longer has":                     {candidate(inStage("gone")), half, 1, 1},
		"somebody rolled back":                                             {[]*revisions.Revision{revision(1, revisions.Delivered, pinned), revision(2, revisions.Delivered)}, canary, 2, 1},
		"somebody rolled back while one is under way":                      {[]*revisions.Revision{revision(1, revisions.Delivered, pinned), revision(2, revisions.Delivering)}, canary, 2, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			history := revisions.NewHistory(test.history)
			got := delivery.Assign(stagesOf(t, nil), history, delivery.Clone{Namespace: "team-1", Stage: test.stage, Has: history.Numbered(test.has)})
			if test.want == 0 {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			require.Equal(t, test.want, got.Number)
		})
	}
}

func TestAGateThatAsksForNothingNeedsNoLook(t *testing.T) {
	none := func(d *stages.Delivery) { d.Gate.Consumers = stages.GateNone }
	history := revisions.NewHistory([]*revisions.Revision{revision(1, revisions.Delivered), revision(2, revisions.Delivering, unopened)})
	require.Equal(t, 2, delivery.Assign(stagesOf(t, none), history, delivery.Clone{Stage: 0}).Number)
	require.Equal(t, 1, delivery.Assign(stagesOf(t, none), history, delivery.Clone{Stage: 1}).Number)
}

// Invariant D12: taking the delivery away lets no content pass that was not delivered.
func TestWithoutStagesWhatWasNotLetPassStaysWhereItIs(t *testing.T) {
	stable := revision(1, revisions.Delivered)
	for sentence, test := range map[string]struct {
		second       *revisions.Revision
		current, has int
		want         int
		follows      bool
	}{
		"the source has delivered content":        {revision(2, revisions.Delivered), 2, 1, 0, true},
		"the source has new content":              {revision(2, revisions.Rejected), 0, 1, 0, true},
		"the source has rejected content":         {revision(2, revisions.Rejected), 2, 1, 1, false},
		"a clone of the rejected content":         {revision(2, revisions.Rejected), 2, 2, 1, false},
		"the source has content that is held":     {revision(2, revisions.Held), 2, 1, 1, false},
		"a clone of the content that is held":     {revision(2, revisions.Held), 2, 2, 2, false},
		"somebody rolled back":                    {revision(2, revisions.Delivered, pinned), 0, 1, 2, false},
		"the source has what is under way so far": {revision(2, revisions.Delivering), 2, 1, 0, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			history := revisions.NewHistory([]*revisions.Revision{stable, test.second})
			got, follows := delivery.AssignWithoutStages(history, history.Numbered(test.current), delivery.Clone{Has: history.Numbered(test.has)})
			require.Equal(t, test.follows, follows)
			if !follows {
				require.Equal(t, test.want, got.Number)
			}
		})
	}
}
