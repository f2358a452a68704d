package inspect

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/output"
	reloaddecide "github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/explain"
	"github.com/headwater-k8s/headwater/reload/refs"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
)

func TestObjectsAsPeopleWriteThem(t *testing.T) {
	want := object.Ref{Kind: object.ConfigMap, Namespace: "team", Name: "a.b"}
	of := kube.Namespace{Name: "team"}
	for _, text := range []string{"ConfigMap/a.b", "cm/a.b", "ConfigMap/team/a.b", "configmaps/team/a.b", "cm/team/a.b", "team/ConfigMap/a.b", "team/cm/a.b"} {
		for _, of := range []kube.Namespace{of, {Name: "team", Asked: true}} {
			got, err := parseObject(text, of)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
	got, err := parseObject("cm/other/a.b", of)
	require.NoError(t, err)
	require.Equal(t, "other", got.Namespace, "the context's namespace is only a default")
	for text, problem := range map[string]string{
		"team":           "is not KIND/NAME, such as secret/blogsecret",
		"Secret//a":      "is not KIND/NAME",
		"Secret/":        "is not KIND/NAME",
		"Secret/a/b/c":   "is not KIND/NAME",
		"team/a":         `kind "team" is neither Secret nor ConfigMap`,
		"Deployment/a/b": `kind "Deployment" is neither Secret nor ConfigMap`,
	} {
		_, err := parseObject(text, of)
		require.ErrorContains(t, err, problem)
	}
	_, err = parseObject("cm/other/a.b", kube.Namespace{Name: "team", Asked: true})
	require.ErrorContains(t, err, "is in namespace other, but --namespace is team")
}

func TestANamespaceThatIsCalledLikeAKind(t *testing.T) {
	got, err := parseObject("Secret/configmaps/a", kube.Namespace{})
	require.NoError(t, err)
	require.Equal(t, object.Ref{Kind: object.Secret, Namespace: "configmaps", Name: "a"}, got)
}

func TestWhyARestartWaitsInWords(t *testing.T) {
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for reason, want := range map[reloaddecide.WaitReason]string{
		reloaddecide.WaitOwner: "the rollout that is under way", reloaddecide.WaitWindow: "no window", reloaddecide.WaitBreaker: "maxRestartsPerHour", reloaddecide.WaitInterval: "minInterval",
	} {
		e := Explanation{Explanation: explain.Explanation{Step: reloadspec.StepRestart, Uses: []explain.Use{{}}, Waits: reason, WaitsUntil: &until}}
		require.Contains(t, e.headline(), "; it waits until 2026-01-02T03:04:05Z: ")
		require.Contains(t, e.headline(), want)
	}
}

func TestConsumersOfClonesAreToldWithTheirObject(t *testing.T) {
	found := Consumers{Object: "Secret/platform/s", Clones: 2}
	table := func() string {
		var out strings.Builder
		found.Table(output.Options{}.Writer(&out))
		return out.String()
	}
	require.Equal(t, "Secret/platform/s: nobody consumes it, nor any of its 2 clones\n", table())
	found.Consumers = []explain.Use{{Consumer: "Deployment/team/web", Object: "Secret/team/s", Mode: refs.EnvFrom}}
	require.Regexp(t, `CONSUMER +OBJECT +CONSUMED`, table())
	require.Regexp(t, `Deployment/team/web +Secret/team/s +EnvFrom`, table())
}

func TestWhatIsDoneNowInWords(t *testing.T) {
	uses := []explain.Use{{Object: "Secret/team/s", Mode: refs.Env, Keys: []string{"k"}, Containers: []string{"app", "setup (init)"}, OptIn: reloadspec.Reloader, OnChange: reloadspec.StepRestart, Reason: reloadspec.ReasonAsked}}
	for step, want := range map[reloadspec.Step]string{
		reloadspec.StepRestart: "to be restarted, since this changed: Secret/team/s",
		reloadspec.StepHold:    "not restarted, since this is missing: Secret/team/s",
		reloadspec.StepRefresh: "volumes to be refreshed, since this changed: Secret/team/s",
		reloadspec.StepAdopt:   "the current data is to be stored as its baseline",
		reloadspec.StepNothing: "nothing to do now",
	} {
		e := Explanation{Explanation: explain.Explanation{Consumer: "Deployment/team/web", Step: step, Objects: []string{"Secret/team/s"}, Uses: uses}}
		require.Equal(t, "Deployment/team/web: "+want, e.headline())
		var table strings.Builder
		e.Table(output.Options{}.Writer(&table))
		require.Regexp(t, `Secret/team/s +Env k +app, setup \(init\) +annotation of Reloader +Restart +a restart is asked for`, table.String())
	}
}

func TestTheTableOfConsumersUsesTheWordsOfExplain(t *testing.T) {
	document, err := os.ReadFile("../../configs/CONSUMERS.md")
	require.NoError(t, err)
	for sentence, row := range map[string]struct {
		modes []refs.Mode
		step  reloadspec.Step
		why   reloadspec.Reason
	}{
		"variables":                     {[]refs.Mode{refs.Env, refs.EnvFrom}, reloadspec.StepRestart, reloadspec.ReasonReadAtStart},
		"a subPath":                     {[]refs.Mode{refs.SubPath}, reloadspec.StepRestart, reloadspec.ReasonReadAtStart},
		"an init container's volume":    {[]refs.Mode{refs.InitVolume}, reloadspec.StepRestart, reloadspec.ReasonReadByInit},
		"a volume":                      {[]refs.Mode{refs.Volume}, reloadspec.StepRefresh, reloadspec.ReasonMounted},
		"an immutable object":           {nil, reloadspec.StepRestart, reloadspec.ReasonImmutable},
		"an object that an owner lists": {[]refs.Mode{refs.Listed}, reloadspec.StepRestart, reloadspec.ReasonListed},
		"what the node reads":           {[]refs.Mode{refs.ImagePull, refs.CSI, refs.Mount}, reloadspec.StepNothing, reloadspec.ReasonReadByNode},
		"what a driver provides":        {[]refs.Mode{refs.Provided}, reloadspec.StepNothing, reloadspec.ReasonProvided},
	} {
		t.Run(sentence, func(t *testing.T) {
			var names []string
			for _, mode := range row.modes {
				names = append(names, "`"+string(mode)+"`")
			}
			first := regexp.QuoteMeta(strings.Join(names, ", "))
			last := regexp.QuoteMeta("| " + string(row.step) + " | " + reasonText(row.why) + " |")
			require.Regexp(t, `(?m)^\| `+first+`.*`+last+`$`, string(document))
		})
	}
	require.Contains(t, string(document), `"`+reasonText(reloadspec.ReasonOnlyRefresh)+`"`)
}
