package app

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/protect/prove"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloaddecide "github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/track"
)

func TestThePageIsToldWhatIsWrongWithTheFile(t *testing.T) {
	const token = "T0K3N"
	_, err := config.Parse("/etc/headwater/headwater.yaml", []byte(`apiVersion: headwater.dev/v1alpha1
kind: Config
rules:
- name: blog
  source: {kind: Secret, namespace: platform, name: blog}
  sync: {onConflict: Sometimes}
notify:
- url: https://`+token+`@hooks.example.com/%zz
`))
	since := time.Unix(1000, 0)
	file := fileOf("/etc/headwater/headwater.yaml", &invalidFile{err, since})
	require.Equal(t, "headwater.yaml", file.Name)
	require.Equal(t, since, file.Since)
	require.Len(t, file.Faults, 2)
	require.Equal(t, 6, file.Faults[0].Line)
	require.Equal(t, "rules[0].sync.onConflict", file.Faults[0].Path)
	require.Contains(t, file.Faults[0].Message, "Overwrite", "the message of the log, which names what is allowed")
	sent, err := json.Marshal(file)
	require.NoError(t, err)
	require.NotContains(t, string(sent), token, "the URL of a receiver is a secret")

	unreadable := fileOf("headwater.yaml", &invalidFile{errors.New("read headwater.yaml: input/output error"), since})
	require.Equal(t, []page.Fault{{Message: "read headwater.yaml: input/output error"}}, unreadable.Faults)
	require.Nil(t, fileOf("headwater.yaml", nil))
}

func TestThePageIsToldHowARuleProtects(t *testing.T) {
	since := time.Unix(1000, 0)
	for sentence, test := range map[string]struct {
		mode     protectspec.Mode
		standing prove.Status
		known    bool
		want     page.Rule
	}{
		"proven":                       {protectspec.Enforce, prove.Status{Proven: true, Since: since}, true, page.Rule{Mode: "Enforce", Proof: page.Proven, Since: since}},
		"not proven":                   {protectspec.Enforce, prove.Status{Since: since, Why: "let pass"}, true, page.Rule{Mode: "Enforce", Proof: page.Unproven, Since: since, Why: "let pass"}},
		"not tried":                    {protectspec.Enforce, prove.Status{}, false, page.Rule{Mode: "Enforce", Proof: page.Untried}},
		"nothing to prove of warnings": {protectspec.Warn, prove.Status{Proven: true, Since: since}, true, page.Rule{Mode: "Warn"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var rule page.Rule
			showProtection(&rule, test.mode, test.standing, test.known)
			require.Equal(t, test.want, rule)
		})
	}
}

func TestThePageIsToldWhyARestartWaits(t *testing.T) {
	since, until := time.Unix(1000, 0), time.Unix(2000, 0)
	told := map[string]bool{}
	for _, reason := range []reloaddecide.WaitReason{
		reloaddecide.WaitOwner, reloaddecide.WaitWindow, reloaddecide.WaitBreaker, reloaddecide.WaitInterval, reloaddecide.WaitRollouts,
	} {
		wait := waitOf(track.Waiting{
			Wait: reloaddecide.Wait{Reason: reason, Until: until}, Consumer: "Deployment/a/web", Rule: "blog", Changed: []string{"Secret/a/s"}, Since: since,
		})
		require.Regexp(t, `^\S.+; changed: Secret/a/s$`, wait.Why, reason)
		require.False(t, told[wait.Why], reason)
		told[wait.Why] = true
		wait.Why = ""
		require.Equal(t, page.Wait{Consumer: "Deployment/a/web", Rule: "blog", What: "waits", Since: since, Until: until}, wait)
	}
	reverted := reasonToWait(track.Waiting{Wait: reloaddecide.Wait{
		Reason: reloaddecide.WaitReverted, By: reloaddecide.Reverter{Owner: "Revision.serving.knative.dev/web", Declare: "Service.serving.knative.dev"},
	}})
	require.Contains(t, reverted, "its owner Revision.serving.knative.dev/web")
	require.Contains(t, reverted, "add Service.serving.knative.dev to reload.workloads", "RuleStatus names the kind to declare")
	held := waitOf(track.Waiting{Wait: reloaddecide.Wait{Reason: reloaddecide.WaitMissing}, Missing: []string{"Secret/a/s"}})
	require.Equal(t, page.Wait{What: "held", Why: "its pods could not start, or would read nothing of what changed; missing: Secret/a/s"}, held)
}
