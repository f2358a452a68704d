package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync"
)

// found is a finding about the clone of that namespace.
func found(namespace string, standing sync.Standing, step sync.Step) sync.Finding {
	return sync.Finding{
		Rule: "blog", Target: object.Ref{Kind: object.Secret, Namespace: namespace, Name: "shared"}, Standing: standing, Step: step,
		Written: time.Unix(1000, 0),
	}
}

func ruleOf(findings ...sync.Finding) *RuleStatus {
	rule := &RuleStatus{Name: "blog", Clones: map[sync.Standing]int{}}
	for _, finding := range findings {
		rule.take(finding, failure{})
	}
	return rule
}

func TestRetainedClonesAreCountedApartAndAreNoProblem(t *testing.T) {
	rule := ruleOf(
		found("a", sync.Current, sync.Step{Action: sync.Leave, Reason: sync.InSync}),
		found("b", sync.Retained, sync.Step{Action: sync.Leave, Reason: sync.RuleRemoved}),
	)
	rule.Removed = true
	require.Equal(t, 1, rule.Total())
	require.Empty(t, rule.Problems)
	status := Status{Rules: []*RuleStatus{rule}}
	require.Empty(t, status.attention())
	var out strings.Builder
	status.Table(&out)
	require.Regexp(t, `blog \(removed\) +0 +1 +1 .* 1 +-\n`, out.String())
	require.Contains(t, out.String(), "blog: 1 clone retained (RuleRemoved): b/shared\n  the rule no longer exists: `headwater release blog`")
}

func TestAFailureCountsUntilTheCloneIsWritten(t *testing.T) {
	for sentence, test := range map[string]struct {
		at   int64
		step sync.Action
		want sync.Standing
	}{
		"after the last write":           {1000, sync.Create, sync.Failed},
		"before it":                      {999, sync.Create, sync.Behind},
		"of a clone that needs no write": {1000, sync.Leave, sync.Behind},
	} {
		t.Run(sentence, func(t *testing.T) {
			rule := &RuleStatus{Clones: map[sync.Standing]int{}}
			rule.take(found("a", sync.Behind, sync.Step{Action: test.step}), failure{"exceeded quota", time.Unix(test.at, 0)})
			require.Equal(t, map[sync.Standing]int{test.want: 1}, rule.Clones)
		})
	}
}

func TestTheSameProblemIsShownOnce(t *testing.T) {
	var findings []sync.Finding
	for i := range 300 {
		namespace := fmt.Sprintf("team-%03d", i)
		findings = append(findings, found(namespace, sync.Failed, sync.Step{
			Action: sync.Create, Reason: sync.Missing, Message: fmt.Sprintf(`create Secret/%s/shared: forbidden in namespace "%[1]s"`, namespace),
		}))
	}
	alone := sync.Step{Action: sync.Create, Reason: sync.Missing, Message: "create Secret/zeta/shared: exceeded quota"}
	status := Status{Rules: []*RuleStatus{ruleOf(append(findings, found("zeta", sync.Failed, alone))...)}}
	var out strings.Builder
	status.Table(&out)
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
		"rule blog: its source is missing": {Rules: []*RuleStatus{{Name: "blog", Missing: "its source is missing"}}},
		"rule blog: protection is not proven: it refused nothing": {Protection: []Protection{{Rule: "blog", Proven: &no, Why: "it refused nothing"}}},
		"rule blog: 1 clone behind (a/shared); rule blog: 2 clones in conflict (b/shared, c/shared)": {Rules: []*RuleStatus{ruleOf(
			found("b", sync.Conflicts, sync.Step{}), found("a", sync.Behind, sync.Step{}), found("c", sync.Conflicts, sync.Step{}),
			found("d", sync.Current, sync.Step{}), found("e", sync.Retained, sync.Step{}))}},
	} {
		t.Run(want, func(t *testing.T) { require.Equal(t, want, strings.Join(status.attention(), "; ")) })
	}
}

func TestAScopeIsARuleAndTargetNamespaces(t *testing.T) {
	in := func(scope Scope) bool { return scope.has(found("team-a", sync.Current, sync.Step{})) }
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
