package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	fluxstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// statuses are RuleStatuses, and what the recipes of the guides make of them.
var statuses = map[string]struct {
	status       string
	argo         string
	message      string
	flux, staged fluxstatus.Status
}{
	"ready": {
		status: `{conditions: [{type: Ready, status: "True", reason: Ready, message: fine}, {type: Synced, status: "True", reason: InSync}]}`,
		argo:   "Healthy", message: "fine", flux: fluxstatus.CurrentStatus, staged: fluxstatus.CurrentStatus,
	},
	"clones are about to be written": {
		status: `{conditions: [{type: Ready, status: "False", reason: Progressing, message: 1 of 2}, {type: Reconciling, status: "True", reason: Progressing}]}`,
		argo:   "Progressing", message: "1 of 2", flux: fluxstatus.InProgressStatus, staged: fluxstatus.InProgressStatus,
	},
	"a conflict": {
		status: `{conditions: [{type: Ready, status: "False", reason: Conflict, message: taken}, {type: Stalled, status: "True", reason: Conflict, message: taken}]}`,
		argo:   "Degraded", message: "taken", flux: fluxstatus.FailedStatus, staged: fluxstatus.FailedStatus,
	},
	"a delivery that waits for approval": {
		status: `{conditions: [{type: Ready, status: "False", reason: AwaitingApproval, message: stage canary}, {type: Reconciling, status: "True", reason: AwaitingApproval}]}`,
		argo:   "Suspended", message: "stage canary", flux: fluxstatus.InProgressStatus, staged: fluxstatus.CurrentStatus,
	},
	"a paused delivery": {
		status: `{conditions: [{type: Ready, status: "False", reason: Paused, message: by me}, {type: Reconciling, status: "True", reason: Paused}]}`,
		argo:   "Suspended", message: "by me", flux: fluxstatus.InProgressStatus, staged: fluxstatus.CurrentStatus,
	},
	"unknown": {
		status: `{conditions: [{type: Ready, status: Unknown, reason: Unknown, message: no idea}]}`,
		argo:   "Progressing", message: "Headwater has not reported the rule yet", flux: fluxstatus.InProgressStatus, staged: fluxstatus.InProgressStatus,
	},
}

// block returns what a YAML block of a guide holds: the first that contains text.
func block(t *testing.T, guide, text string) (content map[string]any) {
	t.Helper()
	document, err := os.ReadFile(filepath.Join(deployDir, "guides", guide))
	require.NoError(t, err)
	for _, found := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllSubmatch(document, -1) {
		if regexp.MustCompile(regexp.QuoteMeta(text)).Match(found[1]) {
			require.NoError(t, yaml.UnmarshalStrict(found[1], &content))
			return content
		}
	}
	require.Fail(t, "no such block", "%s: %s", guide, text)
	return nil
}

func ruleStatus(t *testing.T, status string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: headwater.dev/v1alpha1, kind: RuleStatus, metadata: {name: blog}}"), &object.Object))
	if status != "" {
		var content map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(status), &content))
		object.Object["status"] = content
	}
	return object
}

// luaValue converts a value as Argo CD does.
func luaValue(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case string:
		return lua.LString(value)
	case []any:
		list := l.NewTable()
		for _, one := range value {
			list.Append(luaValue(l, one))
		}
		return list
	case map[string]any:
		table := l.NewTable()
		for key, one := range value {
			table.RawSetString(key, luaValue(l, one))
		}
		return table
	default:
		return lua.LNil
	}
}

// argoHealth runs script with the libraries that Argo CD gives to a script of its ConfigMap.
func argoHealth(t *testing.T, script string, object *unstructured.Unstructured) (health, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for _, open := range []lua.LGFunction{lua.OpenPackage, lua.OpenBase, lua.OpenTable} {
		require.NoError(t, l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}))
	}
	l.SetGlobal("obj", luaValue(l, object.Object))
	require.NoError(t, l.DoString(script))
	result, isTable := l.Get(-1).(*lua.LTable)
	require.True(t, isTable)
	return lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))
}

func TestArgoCDJudgesARuleAsTheGuideSays(t *testing.T) {
	const key = "resource.customizations.health.headwater.dev_RuleStatus"
	script := block(t, "argocd.md", key)["data"].(map[string]any)[key].(string)
	for sentence, test := range statuses {
		t.Run(sentence, func(t *testing.T) {
			health, message := argoHealth(t, script, ruleStatus(t, test.status))
			require.Equal(t, test.argo, health)
			require.Equal(t, test.message, message)
		})
	}
	for _, status := range []string{"", "{}", "{conditions: []}"} {
		health, _ := argoHealth(t, script, ruleStatus(t, status))
		require.Equal(t, "Progressing", health, "status %q", status)
	}
}

func TestFluxJudgesARuleAsTheGuideSays(t *testing.T) {
	checks := block(t, "flux.md", "healthChecks:")["spec"].(map[string]any)["healthChecks"].([]any)
	require.Equal(t, []any{map[string]any{"apiVersion": "headwater.dev/v1alpha1", "kind": "RuleStatus", "name": "feature-flags"}}, checks)
	text, err := yaml.Marshal(block(t, "flux.md", "healthCheckExprs:")["healthCheckExprs"].([]any)[0])
	require.NoError(t, err)
	var staged kustomize.CustomHealthCheck
	require.NoError(t, yaml.UnmarshalStrict(text, &staged))
	evaluator, err := cel.NewStatusEvaluator(&staged.HealthCheckExpressions)
	require.NoError(t, err)
	for sentence, test := range statuses {
		t.Run(sentence, func(t *testing.T) {
			object := ruleStatus(t, test.status)
			byConditions, err := fluxstatus.Compute(object)
			require.NoError(t, err)
			require.Equal(t, test.flux, byConditions.Status)
			byExpressions, err := evaluator.Evaluate(t.Context(), object)
			require.NoError(t, err)
			require.Equal(t, test.staged, byExpressions.Status)
		})
	}
}
