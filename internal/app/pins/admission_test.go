package pins_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/internal/config"
	protectdecide "github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/manifests"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

const (
	ownNamespace = "headwater-system"
	ownUser      = "system:serviceaccount:headwater-system:headwater"
)

// The API server evaluates these texts. One character more makes every replica of
// an older version write them back.
func TestTextOfPoliciesAndWebhooks(t *testing.T) {
	content, err := os.ReadFile("testdata/rich.yaml")
	require.NoError(t, err)
	parsed, err := config.ParseIn(ownNamespace, "rich.yaml", content)
	require.NoError(t, err)
	sets, err := parsed.Compile(ownNamespace)
	require.NoError(t, err)
	world := protectdecide.World{
		Headwater: ownUser, SystemIdentities: parsed.Protect.SystemIdentities,
		Terminating: func(string) bool { return false },
		HasSource:   func(protectspec.Rule) bool { return true },
		Bound:       func(protectdecide.User, string) bool { return false },
		Holders: func(clusterRole string) []string {
			return map[string][]string{
				"cluster-admin": {"group system:masters"}, "secret-editor": {"user bob", "group editors", "user system:serviceaccount:a:b"},
			}[clusterRole]
		},
	}
	var out strings.Builder
	write := func(what string, object any) {
		text, err := yaml.Marshal(object)
		require.NoError(t, err)
		out.WriteString("---\n# " + what + "\n" + string(text))
	}
	for _, policy := range append(manifests.Policies(sets.Protect, world, protectspec.Enforce, protectspec.Warn, protectspec.Audit), manifests.SelfPolicy(world)) {
		write("policy", policy.Definition)
		write("binding", policy.Binding)
	}
	service, err := protectspec.NewEndpoint("", ownNamespace)
	require.NoError(t, err)
	for _, stance := range []manifests.FailureMode{manifests.Probe, manifests.FailClosed, manifests.FailOpen} {
		write("webhooks, "+string(stance), manifests.Configuration(sets.Protect, ownUser, stance, service, []byte("CA")))
	}
	outside, err := protectspec.NewEndpoint("https://127.0.0.1:9443/headwater/", ownNamespace)
	require.NoError(t, err)
	write("webhooks at a URL", manifests.Configuration(sets.Protect, ownUser, manifests.FailOpen, outside, []byte("CA")))
	requireGolden(t, "admission.yaml", out.String())
}
