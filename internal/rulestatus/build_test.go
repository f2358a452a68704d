package rulestatus

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
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

func TestNumbersAreEnoughOfClonesThatNeedNoAttention(t *testing.T) {
	visited := &Facts{Clones: clones(clone("a", survey.Current, ""), clone("b", survey.Current, ""), clone("c", survey.Behind, ""))}
	counted := &Facts{Clones: NewCloneFacts()}
	counted.Clones.Count(survey.Current, 2)
	counted.Clones.Count(survey.Behind, 1)
	require.Equal(t, build(t, visited, &Status{}, now), build(t, counted, &Status{}, now))
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
		"there is nothing to clone to":            {func(f *Facts) { f.Clones = clones() }, "Ready", ""},
		"a source is missing since now":           {func(f *Facts) { f.Missing = "no source" }, "SourceMissing", Reconciling},
		"sources cannot be read":                  {func(f *Facts) { f.Missing, f.CannotRead = "no source", &kube.Loss{} }, CannotRead, Stalled},
		"clones have not been read yet":           {func(f *Facts) { f.Unread, f.Clones = true, clones() }, reading, Reconciling},
		"consumers cannot be read":                {func(f *Facts) { f.Reloads, f.CannotReadConsumers = true, &kube.Loss{} }, CannotRead, Stalled},
		"a changed configuration is not valid":    {func(f *Facts) { f.Refused = Refusal{Reason: "Invalid", Message: "line 3"} }, "Invalid", Stalled},
		"changes are not denied":                  {func(f *Facts) { f.Protection.Verified = false }, "NotVerified", Stalled},
		"nobody has tried the protection":         {func(f *Facts) { f.Protection.Known = false }, "Unknown", Reconciling},
		"a rule that only audits is ready":        {func(f *Facts) { f.Protection.Mode = "Audit" }, "Ready", ""},
		"a restart that waits keeps nothing back": {func(f *Facts) { f.Waits = []Wait{{Why: "no window is open", Consumers: 2}} }, "Ready", ""},
		"a stuck rollout keeps nothing back":      {func(f *Facts) { f.Stuck = []Stuck{{Reason: "CrashLoopBackOff", Consumers: 2}} }, "Ready", ""},
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

func TestWhatIsNotReadYetIsShownAsItWasKnownLast(t *testing.T) {
	facts := healthy()
	facts.Clones = clones(clone("a", survey.Current, ""), clone("b", survey.Conflicting, "taken"))
	facts.Held, facts.History = &Held{}, &History{}
	before := build(t, facts, &Status{}, now)
	before.Delivery = &Delivery{State: DeliveryDelivering}

	unread := healthy()
	unread.Clones, unread.Unread = clones(), true
	after := build(t, unread, &before, now.Add(time.Minute))
	require.Equal(t, metav1.ConditionUnknown, after.Condition(Synced).Status)
	require.Equal(t, metav1.ConditionUnknown, after.Condition(Ready).Status)
	require.Equal(t, metav1.ConditionTrue, after.Condition(Protected).Status)
	require.Equal(t, before.Clones, after.Clones)
	require.Equal(t, before.Problems, after.Problems)
	require.Equal(t, before.Held, after.Held)
	require.Equal(t, before.History, after.History)
	require.Equal(t, before.Delivery, after.Delivery)

	unread.Clones = nil
	none := build(t, unread, &Status{}, now)
	require.Nil(t, none.Condition(Synced), "it clones nothing")
}

func TestReloadedSaysWhichRestartsDidNotDoTheirWork(t *testing.T) {
	window := Wait{Why: "no window is open", Consumers: 2, First: "Deployment/a/web"}
	held := Wait{Held: true, Why: "Secret/a/s is missing", Consumers: 1, First: "Deployment/a/api"}
	standing := Stuck{Reason: "Standing", Consumers: 1, First: "StatefulSet/a/db", Pod: "db-0"}
	crashing := Stuck{Reason: "CrashLoopBackOff", Consumers: 2, First: "Deployment/b/web"}
	for sentence, test := range map[string]struct {
		waits   []Wait
		stuck   []Stuck
		reason  string
		message string
	}{
		"none waits, and all are complete": {nil, nil, "NothingWaits", "no restart waits"},
		"some wait":                        {[]Wait{window}, nil, "Waiting", "2 restarts waiting: 2 because no window is open (Deployment/a/web)"},
		"one is held as well":              {[]Wait{window, held}, nil, "Held", "3 restarts waiting: 2 because no window is open (Deployment/a/web); 1 because Secret/a/s is missing (Deployment/a/api)"},
		"some are stuck":                   {nil, []Stuck{standing, crashing}, "RolloutStuck", "3 rollouts stuck: 1 Standing (StatefulSet/a/db, pod db-0); 2 CrashLoopBackOff (Deployment/b/web)"},
		"one is stuck, and another waits":  {[]Wait{held}, []Stuck{standing}, "RolloutStuck", "1 rollout stuck: 1 Standing (StatefulSet/a/db, pod db-0); 1 restart waiting: 1 because Secret/a/s is missing (Deployment/a/api)"},
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := healthy()
			facts.Reloads, facts.Waits, facts.Stuck = true, test.waits, test.stuck
			status := build(t, facts, &Status{}, now)
			condition := status.Condition(Reloaded)
			require.Equal(t, test.reason == "NothingWaits", condition.Status == metav1.ConditionTrue)
			require.Equal(t, test.reason, condition.Reason)
			require.Equal(t, test.message, condition.Message)
		})
	}
}

func TestAFewNamespacesKeepNoRuleFromBeingReadyIfItToleratesThem(t *testing.T) {
	terminating := clone("z", survey.Behind, "the clone is being deleted")
	terminating.Decision.Reason = plan.CloneTerminating
	for sentence, test := range map[string]struct {
		tolerates int
		failing   []survey.CloneStatus
		reason    string
		message   string
	}{
		"none is tolerated by default":                    {0, []survey.CloneStatus{clone("x", survey.Conflicting, "taken")}, "Conflict", "1 of 2 clones"},
		"one conflict of one":                             {1, []survey.CloneStatus{clone("x", survey.Conflicting, "taken")}, "Ready", "1 of 2 clones in sync: 1 conflict; sync.maxNotReady tolerates it"},
		"two clones of one namespace":                     {1, []survey.CloneStatus{clone("x", survey.Failed, "quota"), clone("x", survey.Refused, "large")}, "Ready", "1 refused, 1 failed"},
		"two namespaces of one":                           {1, []survey.CloneStatus{clone("x", survey.Failed, "quota"), clone("y", survey.Failed, "quota")}, "Failed", ""},
		"what is held is never tolerated":                 {9, []survey.CloneStatus{clone("x", survey.Held, "held")}, "Held", ""},
		"nor is a change on its way":                      {9, []survey.CloneStatus{clone("x", survey.Conflicting, "taken"), clone("y", survey.Behind, "")}, "Progressing", ""},
		"a finalizer keeps no rule from being ready":      {0, []survey.CloneStatus{terminating}, "Ready", "a finalizer keeps 1 clone after the deletion"},
		"but hides no other clone that is not up to date": {0, []survey.CloneStatus{terminating, clone("y", survey.Behind, "")}, "Progressing", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := healthy()
			facts.Clones = clones(append(test.failing, clone("a", survey.Current, ""))...)
			facts.Tolerates = func(int) int { return test.tolerates }
			status := build(t, facts, &Status{}, now)
			require.Equal(t, test.reason, status.Condition(Ready).Reason)
			require.Contains(t, status.Condition(Ready).Message, test.message)
			for _, one := range test.failing {
				if one.Status != survey.Behind || one.Decision.Reason == plan.CloneTerminating {
					require.Contains(t, fmt.Sprint(status.Problems), one.Target.Namespace, "it is named all the same")
				}
			}
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
			forged := first
			forged.Conditions = slices.Clone(first.Conditions)
			for i := range forged.Conditions {
				forged.Conditions[i].LastTransitionTime = metav1.NewTime(now.Add(time.Hour))
			}
			corrected := build(t, facts(), &forged, now)
			require.Equal(t, Stalled, abnormal(build(t, facts(), &corrected, now.Add(patience))), "a forged time delays nothing")
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

func TestWhatToDoAboutARuleThatIsNotReady(t *testing.T) {
	found := func(reason string, stalled bool) []metav1.Condition {
		all := []metav1.Condition{{Type: Ready, Status: metav1.ConditionFalse, Reason: reason, Message: "why"}}
		if stalled {
			all = append(all, metav1.Condition{Type: Stalled, Status: metav1.ConditionTrue, Reason: reason})
		}
		return all
	}
	source := &Sources{Total: 1, First: []Source{{Kind: "Secret", Namespace: "src", Name: "shared"}}}
	for sentence, test := range map[string]struct {
		status Status
		person bool
		want   string
	}{
		"no status yet":                  {Status{}, false, ""},
		"clones are being written":       {Status{Conditions: found("Progressing", false)}, false, ""},
		"a delivery goes on":             {Status{Conditions: found(DeliveryDelivering, false)}, false, ""},
		"a delivery waits for approval":  {Status{Conditions: found(DeliveryAwaitingApproval, false)}, true, "headwater promote a"},
		"a delivery was rejected":        {Status{Conditions: found(DeliveryRejected, true)}, true, "headwater history a"},
		"a delivery is held":             {Status{Conditions: found(DeliveryHeld, true), Clones: &Clones{}}, true, "headwater history a"},
		"removals are held":              {Status{Conditions: found("Held", true), Held: &Held{Removals: 3}}, true, "headwater approve a --dry-run"},
		"an emptied revision is held":    {Status{Conditions: found(DeliveryHeld, true), Held: &Held{Emptied: []Emptied{{}}}}, true, "headwater approve a --dry-run"},
		"clones conflict":                {Status{Conditions: found("Conflict", true), Clones: &Clones{NeedAttention: 3}}, true, "headwater plan -o wide"},
		"the source has been missing":    {Status{Conditions: found("SourceMissing", true), Sources: source}, true, "kubectl -n src events --for secret/shared"},
		"a source of several is missing": {Status{Conditions: found("SourceMissing", true), Sources: &Sources{Total: 2}}, true, "headwater status a"},
		"the protection is not verified": {Status{Conditions: found(protectionNotVerified, true)}, true, "headwater who-can-edit a"},
		"the configuration is not valid": {Status{Conditions: found("Invalid", true)}, true, "headwater status a"},
	} {
		t.Run(sentence, func(t *testing.T) {
			todo, is := test.status.Todo("a")
			require.True(t, is)
			require.Equal(t, test.person, todo.Person)
			require.Equal(t, test.want, todo.Command)
		})
	}
	_, is := (&Status{Conditions: []metav1.Condition{{Type: Ready, Status: metav1.ConditionTrue}}}).Todo("a")
	require.False(t, is)
}

func TestNoCloneAtAllIsNotCalledInSync(t *testing.T) {
	for missing, want := range map[string]string{"": "NoNamespaces", "no source": "InSync"} {
		facts := healthy()
		facts.Clones, facts.Missing = clones(), missing
		status := build(t, facts, &Status{}, now)
		require.Equal(t, want, status.Condition(Synced).Reason)
	}
}
