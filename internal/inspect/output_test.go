package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/reload/explain"
	"github.com/headwater-k8s/headwater/sync/plan"
)

func TestResultsAreListedByNamesThatCommandsAccept(t *testing.T) {
	uses := []explain.Use{{Consumer: "Deployment/a/web", Object: "Secret/a/x"}, {Consumer: "Deployment/a/web", Object: "Secret/a/y"}}
	for sentence, test := range map[string]struct {
		what output.Printable
		want string
	}{
		"clones of a plan":       {Plan{Steps: []plannedStep{{Kind: object.Secret, Namespace: "a", Name: "x"}}}, "Secret/a/x\n"},
		"consumers, each once":   {Consumers{Consumers: uses}, "Deployment/a/web\n"},
		"objects of a consumer":  {Explanation{Explanation: explain.Explanation{Uses: uses}}, "Secret/a/x\nSecret/a/y\n"},
		"clones that are pruned": {Leftovers{Clones: []string{"Secret/a/x"}}, "Secret/a/x\n"},
		"nothing":                {Plan{}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			text, err := output.Options{Format: output.Name}.Text(test.what)
			require.NoError(t, err)
			require.Equal(t, test.want, text)
		})
	}
}

func TestMoreIsShownToThoseWhoAskForIt(t *testing.T) {
	shows := func(what output.Printable, format output.Format) string {
		text, err := output.Options{Format: format}.Text(what)
		require.NoError(t, err)
		return text
	}
	var many Plan
	for _, namespace := range []string{"a", "b", "c", "d", "e", "f"} {
		many.Steps = append(many.Steps, plannedStep{Rule: "one", Action: plan.Create, Namespace: namespace, Name: "x"})
	}
	require.Contains(t, shows(many, output.Table), "e/x and 1 more\n")
	require.Contains(t, shows(many, output.Wide), "e/x, f/x\n")
}
