package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// found is a finding about the clone of that namespace.
func found(namespace string, status survey.Status, step plan.Decision) survey.CloneStatus {
	return survey.CloneStatus{
		Rule: "blog", Target: object.Ref{Kind: object.Secret, Namespace: namespace, Name: "shared"}, Status: status, Decision: step,
		Written: time.Unix(1000, 0),
	}
}

func ruleOf(findings ...survey.CloneStatus) *ruleStatus {
	rule := &ruleStatus{Name: "blog", Clones: map[survey.Status]int{}}
	for _, cloneStatus := range findings {
		rule.add(cloneStatus, failure{})
	}
	return rule
}

func TestRetainedClonesAreCountedApartAndAreNoProblem(t *testing.T) {
	rule := ruleOf(
		found("a", survey.Current, plan.Decision{Action: plan.Leave, Reason: plan.InSync}),
		found("b", survey.Retained, plan.Decision{Action: plan.Leave, Reason: plan.RuleRemoved}),
	)
	rule.Removed = true
	require.Equal(t, 1, rule.total())
	require.Empty(t, rule.Problems)
	status := Status{Rules: []*ruleStatus{rule}}
	require.Empty(t, status.attention())
	var out strings.Builder
	status.Table(output.Options{}.Writer(&out))
	require.Regexp(t, `blog \(removed\) +0 +1 +1 .* 1 +-\n`, out.String())
	require.Contains(t, out.String(), "blog: 1 clone retained (RuleRemoved): b/shared\n  the rule no longer exists: `headwater release blog`")
}

func TestAFailureCountsUntilTheCloneIsWritten(t *testing.T) {
	for sentence, test := range map[string]struct {
		at   int64
		step plan.Action
		want survey.Status
	}{
		"after the last write":           {1000, plan.Create, survey.Failed},
		"before it":                      {999, plan.Create, survey.Behind},
		"of a clone that needs no write": {1000, plan.Leave, survey.Behind},
	} {
		t.Run(sentence, func(t *testing.T) {
			rule := &ruleStatus{Clones: map[survey.Status]int{}}
			rule.add(found("a", survey.Behind, plan.Decision{Action: test.step}), failure{"exceeded quota", time.Unix(test.at, 0)})
			require.Equal(t, map[survey.Status]int{test.want: 1}, rule.Clones)
		})
	}
}

func TestTheSameProblemIsShownOnce(t *testing.T) {
	var findings []survey.CloneStatus
	for i := range 300 {
		namespace := fmt.Sprintf("team-%03d", i)
		findings = append(findings, found(namespace, survey.Failed, plan.Decision{
			Action: plan.Create, Reason: plan.Missing, Message: fmt.Sprintf(`create Secret/%s/shared: forbidden in namespace "%[1]s"`, namespace),
		}))
	}
	alone := plan.Decision{Action: plan.Create, Reason: plan.Missing, Message: "create Secret/zeta/shared: exceeded quota"}
	status := Status{Rules: []*ruleStatus{ruleOf(append(findings, found("zeta", survey.Failed, alone))...)}}
	var out strings.Builder
	status.Table(output.Options{}.Writer(&out))
	_, problems, _ := strings.Cut(out.String(), "\n\n")
	require.Equal(t, `blog: 300 clones failed (Missing): team-000/shared, team-001/shared, team-002/shared, team-003/shared, team-004/shared and 295 more
  create Secret: forbidden in namespace "NAMESPACE"

blog: 1 clone failed (Missing): zeta/shared
  create Secret/zeta/shared: exceeded quota
`, problems)
}

func TestEverythingThatIsNotAsTheRulesSayNeedsAttention(t *testing.T) {
	yes, no := true, false
	for want, status := range map[string]Status{
		"":                                 {Leader: &Leadership{Leads: true}, Protection: []Protection{{Rule: "blog", Proven: &yes}, {Rule: "untried"}}},
		"no replica leads":                 {Leader: &Leadership{}},
		"namespace team-x does not exist":  {MissingNamespaces: []string{"team-x"}},
		"rule blog: its source is missing": {Rules: []*ruleStatus{{Name: "blog", Missing: "its source is missing"}}},
		"rule blog: protection is not proven: it refused nothing": {Protection: []Protection{{Rule: "blog", Proven: &no, Why: "it refused nothing"}}},
		"rule blog: 1 clone behind (a/shared); rule blog: 2 clones in conflict (b/shared, c/shared)": {Rules: []*ruleStatus{ruleOf(
			found("b", survey.Conflicting, plan.Decision{}), found("a", survey.Behind, plan.Decision{}), found("c", survey.Conflicting, plan.Decision{}),
			found("d", survey.Current, plan.Decision{}), found("e", survey.Retained, plan.Decision{}))}},
	} {
		t.Run(want, func(t *testing.T) { require.Equal(t, want, strings.Join(status.attention(), "; ")) })
	}
}

func TestAScopeIsARuleAndTargetNamespaces(t *testing.T) {
	in := func(scope Scope) bool { return scope.has(found("team-a", survey.Current, plan.Decision{})) }
	for sentence, test := range map[string]struct {
		scope Scope
		want  bool
	}{
		"everything":                      {Scope{}, true},
		"the rule":                        {Scope{Rule: "blog"}, true},
		"another rule":                    {Scope{Rule: "other"}, false},
		"the namespace":                   {Scope{Namespaces: []string{"x", "team-a"}}, true},
		"a glob":                          {Scope{Namespaces: []string{"team-*"}}, true},
		"another namespace":               {Scope{Namespaces: []string{"team"}}, false},
		"the rule in another namespace":   {Scope{Rule: "blog", Namespaces: []string{"team"}}, false},
		"another rule, in this namespace": {Scope{Rule: "other", Namespaces: []string{"team-a"}}, false},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, in(test.scope)) })
	}
	require.Equal(t, []string{"team-a"}, Scope{Namespaces: []string{"team-*", "team-a", "t?", "[ab]"}}.names())
	require.NoError(t, Scope{Namespaces: []string{"team-*"}}.Validate())
	require.ErrorContains(t, Scope{Namespaces: []string{"[a"}}.Validate(), `target namespace "[a" is no name or glob`)
	require.Error(t, Scope{Namespaces: []string{""}}.Validate())
}
