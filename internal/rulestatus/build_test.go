package rulestatus

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func clone(namespace string, status survey.Status, message string) survey.CloneStatus {
	return survey.CloneStatus{
		Rule: "blog", Source: object.Ref{Kind: object.Secret, Namespace: "platform", Name: "shared"},
		Target: object.Ref{Kind: object.Secret, Namespace: namespace, Name: "shared"}, Status: status,
		Decision: plan.Decision{Reason: plan.Conflict, Message: message},
	}
}

func clones(all ...survey.CloneStatus) *CloneFacts {
	facts := NewCloneFacts()
	for _, one := range all {
		facts.Add(one)
	}
	return facts
}

func healthy() *Facts {
	return &Facts{
		ConfigurationRevision: "abc", Sources: Sources{Total: 1}, Clones: clones(clone("a", survey.Current, "")),
		Protection: &ProtectionFacts{Mode: "Enforce", Known: true, Verified: true}, Reloads: true,
	}
}

func build(t *testing.T, f *Facts, before *Status, at time.Time) Status {
	t.Helper()
	status, _ := Build(f, before, at)
	return status
}

// abnormal returns the condition for kstatus that is present, if any.
func abnormal(s Status) string {
	for _, name := range []string{Stalled, Reconciling} {
		if s.Condition(name) != nil {
			return name
		}
	}
	return ""
}

func TestNumbersAreEnoughUnlessACloneNeedsAttention(t *testing.T) {
	require.Equal(t, clones(clone("a", survey.Current, ""), clone("b", survey.Current, ""), clone("c", survey.Behind, "")),
		Counted(map[survey.Status]int{survey.Current: 2, survey.Behind: 1}))
	for _, status := range []survey.Status{survey.Conflicting, survey.Refused, survey.Held, survey.Fighting, survey.Failed} {
		require.Nil(t, Counted(map[survey.Status]int{survey.Current: 2, status: 1}), status)
	}
}

func TestReadySaysWhyARuleIsNot(t *testing.T) {
	for sentence, test := range map[string]struct {
		change           func(*Facts)
		reason, abnormal string
	}{
		"all is well":                    {func(*Facts) {}, "Ready", ""},
		"clones are about to be written": {func(f *Facts) { f.Clones = clones(clone("a", survey.Behind, "")) }, "Progressing", Reconciling},
		"a conflict needs a person":      {func(f *Facts) { f.Clones = clones(clone("a", survey.Conflicting, "taken")) }, "Conflict", Stalled},
		"a conflict goes before a write that may succeed": {func(f *Facts) {
			f.Clones = clones(clone("a", survey.Failed, "quota"), clone("b", survey.Conflicting, "taken"))
		}, "Conflict", Stalled},
		"a removal is held":                       {func(f *Facts) { f.Clones = clones(clone("a", survey.Held, "held")) }, "Held", Stalled},
		"a write has just failed":                 {func(f *Facts) { f.Clones = clones(clone("a", survey.Failed, "quota")) }, "Failed", Reconciling},
		"a source is missing since now":           {func(f *Facts) { f.Missing = "no source" }, "SourceMissing", Reconciling},
		"a changed configuration is not valid":    {func(f *Facts) { f.InvalidAt = "line 3" }, "Invalid", Stalled},
		"changes are not denied":                  {func(f *Facts) { f.Protection.Verified = false }, "NotVerified", Stalled},
		"nobody has tried the protection":         {func(f *Facts) { f.Protection.Known = false }, "Unknown", Reconciling},
		"a rule that only audits is ready":        {func(f *Facts) { f.Protection.Mode = "Audit" }, "Ready", ""},
		"a restart that waits keeps nothing back": {func(f *Facts) { f.Waits = []Wait{{Why: "no window is open", Consumers: 2}} }, "Ready", ""},
		"a delivery is under way": {func(f *Facts) {
			f.Delivery = &DeliveryFacts{Delivery: Delivery{State: DeliveryDelivering, Stage: "canary"}}
		}, "Delivering", Reconciling},
		"a revision was rejected": {func(f *Facts) {
			f.Delivery = &DeliveryFacts{Delivery: Delivery{State: DeliveryRejected}}
		}, "Rejected", Stalled},
		"what needs a person goes before what takes time": {func(f *Facts) {
			f.Clones = clones(clone("a", survey.Behind, ""))
			f.Protection.Verified = false
		}, "NotVerified", Stalled},
		"a removed rule keeps clones on purpose": {func(f *Facts) {
			f.Removed, f.Clones = true, clones(clone("a", survey.Retained, ""))
		}, "RuleRemoved", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := healthy()
			test.change(facts)
			status := build(t, facts, &Status{}, now)
			require.Equal(t, test.reason, status.Condition(Ready).Reason)
			require.Equal(t, test.abnormal, abnormal(status))
			require.Equal(t, test.abnormal == "", status.Condition(Ready).Status == metav1.ConditionTrue)
		})
	}
}

func TestWhatMayBecomeRightByItselfStallsAfterAWhile(t *testing.T) {
	for sentence, change := range map[string]func(*Facts){
		"a missing source": func(f *Facts) { f.Missing = "no source" },
		"a failing write":  func(f *Facts) { f.Clones = clones(clone("a", survey.Failed, "quota")) },
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := func() *Facts { f := healthy(); change(f); return f }
			first, again := Build(facts(), &Status{}, now)
			require.Equal(t, Reconciling, abnormal(first))
			require.Equal(t, patience, again)
			later := build(t, facts(), &first, now.Add(patience))
			require.Equal(t, Stalled, abnormal(later))
			restarted := facts()
			restarted.Clones.failingSince = now.Add(2 * patience) // as a new leader sees it
			require.Equal(t, Stalled, abnormal(build(t, restarted, &later, now.Add(2*patience))))
		})
	}
}

func TestNothingChangesWithTimeAlone(t *testing.T) {
	first := build(t, healthy(), &Status{}, now)
	require.Equal(t, first, build(t, healthy(), &first, now.Add(time.Hour)))
}

func TestANewLeaderKeepsWhatItCannotKnowYet(t *testing.T) {
	known := func() *Facts {
		facts := healthy()
		facts.Propagation = &Propagation{Clones: 7, Duration: "1s"}
		facts.Delivery = &DeliveryFacts{Judged: true, Delivery: Delivery{State: DeliveryAwaitingApproval, Revision: 2, Stage: "canary", Message: "waits"}}
		return facts
	}
	before := build(t, known(), &Status{}, now)
	restarted := known()
	restarted.Propagation, restarted.Protection.Known = nil, false
	restarted.Delivery.Judged, restarted.Delivery.State, restarted.Delivery.Message = false, DeliveryDelivering, ""
	after := build(t, restarted, &before, now.Add(time.Hour))
	require.Equal(t, before.Condition(Ready), after.Condition(Ready))
	require.Equal(t, before.Delivery, after.Delivery)
	require.Equal(t, before.LastPropagation, after.LastPropagation)
	require.Equal(t, "Verified", after.Protection)
}

func TestThreeHundredConflictsAreOneProblem(t *testing.T) {
	facts := healthy()
	facts.Clones = NewCloneFacts()
	for i := range 300 {
		namespace := fmt.Sprintf("team-%03d", 299-i)
		facts.Clones.Add(clone(namespace, survey.Conflicting, "Secret/"+namespace+"/shared is not Headwater's"))
	}
	status := build(t, facts, &Status{}, now)
	require.Equal(t, []Problem{{
		State: "conflict", Reason: "Conflict", Message: "Secret/team-000/shared is not Headwater's", Clones: 300,
		Namespaces: []string{"team-000", "team-001", "team-002", "team-003", "team-004"},
	}}, status.Problems)
	require.Equal(t, 300, status.Clones.NeedAttention)
}

func TestAStatusIsSmall(t *testing.T) {
	facts := healthy()
	for i := range 5000 {
		facts.Clones.Add(clone(fmt.Sprintf("team-%d", i), survey.Failed, fmt.Sprintf("error number %dx", i)))
	}
	status := build(t, facts, &Status{}, now)
	require.Len(t, status.Problems, maxProblems)
	require.Equal(t, maxGroups+1-maxProblems, status.MoreProblems)
}
