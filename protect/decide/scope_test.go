package decide_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func TestQuestionsTravelInThePath(t *testing.T) {
	for path, question := range map[string]decide.Scope{
		"/validate/marks":          {About: decide.AboutMarks},
		"/validate/selected/a":     {decide.AboutSelected, []string{"a"}},
		"/validate/namespaces/a/b": {decide.AboutNamespaces, []string{"a", "b"}},
	} {
		t.Run(path, func(t *testing.T) {
			require.Equal(t, path, question.Path())
			require.Equal(t, question, decide.ScopeAt(path))
		})
	}
	require.Equal(t, decide.Scope{}, decide.ScopeAt("/validate"), "about everything")
}

func TestDecideAnswersWhatIsAsked(t *testing.T) {
	set := rules.NewSet(
		protecttest.NewRule("named", object.Secret, "platform", "blogsecret", func(r *spec.Rule) { r.Allow = spec.Allow{Users: []string{alice}} }),
		protecttest.NewRule("owner", object.Secret, "somewhere", "else", func(r *spec.Rule) { r.Clones = spec.Deny }),
		protecttest.SelectingRule(),
	)
	marked := protecttest.NewSecret(func(o *object.Full) {
		o.Labels = object.Merged(o.Labels, map[string]string{"headwater.dev/clone": "true", "share": "yes"})
		o.Annotations = object.Merged(o.Annotations, map[string]string{"headwater.dev/rule": "owner", "headwater.dev/source": "Secret/somewhere/else"})
	})
	changed := *marked
	changed.Content.Data = map[string][]byte{"k": []byte("other")}
	for sentence, tc := range map[string]struct {
		path string
		want decide.Reason
		by   string
	}{
		"by the rule that names it":                         {"/validate/sources", decide.ReasonExempt, "named"},
		"by a rule that selects it":                         {"/validate/selected/shared", decide.ReasonProtected, "shared"},
		"by the rule that it is a clone of":                 {"/validate/clones", decide.ReasonProtected, "owner"},
		"by its marks":                                      {"/validate/marks", decide.ReasonNoProtectedChange, "owner"},
		"by a rule that is gone: then by all":               {"/validate/selected/gone", decide.ReasonProtected, "shared"},
		"by a rule that is about another object: by all":    {"/validate/selected/owner", decide.ReasonProtected, "shared"},
		"by whatever there is, without a question":          {"/validate", decide.ReasonProtected, "shared"},
		"in a way that there is not: then in all there are": {"/validate/else", decide.ReasonProtected, "shared"},
	} {
		t.Run(sentence, func(t *testing.T) {
			request := update(alice, marked, &changed)
			request.Scope = decide.ScopeAt(tc.path)
			verdict := decide.Decide(request, set, newWorld())
			require.Equal(t, tc.want, verdict.Reason)
			require.Equal(t, tc.by, verdict.Rule)
		})
	}
}

func TestDecideAnswersByWhichRuleANamespaceIsAskedAbout(t *testing.T) {
	set := rules.NewSet(
		protecttest.NewRule("lets", object.Secret, "platform", "a", func(r *spec.Rule) { r.Allow = spec.Allow{Users: []string{alice}} }),
		protecttest.NewRule("guards", object.Secret, "platform", "b"),
	)
	for path, want := range map[string]decide.Reason{
		"/validate/namespaces/lets": decide.ReasonExempt, "/validate/namespaces/guards": decide.ReasonNamespaceGuarded,
		"/validate/namespaces": decide.ReasonNamespaceGuarded, "/validate/namespaces/gone": decide.ReasonNamespaceGuarded,
	} {
		t.Run(path, func(t *testing.T) {
			request := removeNamespace(alice, "platform")
			request.Scope = decide.ScopeAt(path)
			require.Equal(t, want, decide.Decide(request, set, newWorld()).Reason)
		})
	}
}
