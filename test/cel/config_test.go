package cel

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/config"
	protectdecide "github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/manifests"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

const (
	// maxConditions and maxObjectBytes are the API server's limits.
	maxConditions  = 64
	maxObjectBytes = 3 << 20

	headwaterUser = "system:serviceaccount:headwater:headwater"
)

// quiet is a world in which everything is there, and no role is bound.
func quiet(settings protectspec.Settings) protectdecide.World {
	return protectdecide.World{
		Headwater:        headwaterUser,
		SystemIdentities: settings.SystemIdentities,
		Terminating:      func(string) bool { return false },
		HasSource:        func(protectspec.Rule) bool { return true },
		Holders:          func(string) []string { return nil },
		Bound:            func(protectdecide.User, string) bool { return false },
	}
}

// generated is everything that the API server is given to evaluate.
type generated struct {
	policies []manifests.Policy
	webhooks []webhook
}

// generate compiles everything that a configuration makes Headwater register,
// in whatever state it is.
func generate(t testing.TB, parsed *config.Config) generated {
	t.Helper()
	sets, err := parsed.Compile("headwater")
	require.NoError(t, err)
	world := quiet(parsed.Protect)
	all := generated{policies: append(manifests.Policies(sets.Protect, world, protectspec.Enforce, protectspec.Warn, protectspec.Audit), manifests.SelfPolicy(world))}
	endpoint, err := protectspec.NewEndpoint("", "headwater")
	require.NoError(t, err)
	for _, stance := range []manifests.FailureMode{manifests.Probe, manifests.FailClosed, manifests.FailOpen} {
		configuration := manifests.Configuration(sets.Protect, headwaterUser, stance, endpoint, nil)
		if configuration == nil {
			continue
		}
		require.Less(t, configuration.Size(), maxObjectBytes)
		names := map[string]bool{}
		for _, definition := range configuration.Webhooks {
			require.Empty(t, apivalidation.IsFullyQualifiedName(nil, definition.Name))
			require.False(t, names[definition.Name], "%s is there twice", definition.Name)
			names[definition.Name] = true
			require.LessOrEqual(t, len(definition.MatchConditions), maxConditions)
			all.webhooks = append(all.webhooks, compileWebhook(t, definition))
		}
	}
	for _, p := range all.policies {
		checkForm(t, p)
		compilePolicy(t, p)
	}
	return all
}

// checkForm holds a policy to what the API server demands beside CEL.
func checkForm(t testing.TB, p manifests.Policy) {
	t.Helper()
	spec := p.Definition.Spec
	require.Less(t, p.Definition.Size(), maxObjectBytes)
	require.LessOrEqual(t, len(spec.MatchConditions), maxConditions)
	require.NotEmpty(t, spec.Validations)
	for _, validation := range spec.Validations {
		require.NotContains(t, validation.Message, "\n")
		require.False(t, validation.Message != "" && strings.TrimSpace(validation.Message) == "", "a message of blanks")
		require.NotContains(t, validation.Expression, "\n")
	}
}

const head = "apiVersion: headwater.dev/v1alpha1\nkind: Config\n"

// FuzzExpressions holds whatever configuration is accepted against the API
// server's compiler.
func FuzzExpressions(f *testing.F) {
	files, err := filepath.Glob("../../configs/*.yaml")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(raw)
	}
	rule := head + "rules:\n- name: a\n  source: {kind: Secret, namespace: p, %s}\n  sync: {}\n  protect: {%s}\n"
	for _, odd := range []string{`a\"b`, `a'b`, `a\\`, `\u2028\u00e9\U0001F600`, `${x}`, `%s%d`, "`", `\t x \n`, `\u0085`} {
		f.Add(fmt.Appendf(nil, rule, "name: s", `message: "`+odd+`", allow: {users: ["`+odd+`"], groups: ["`+odd+`"], clusterRoles: ["`+odd+`"]}`))
		f.Add(fmt.Appendf(nil, head+"protect: {systemIdentities: [\"%s\"]}\nrules:\n- name: a\n  source: {kind: Secret, namespace: p, name: s}\n  protect: {}\n", odd))
	}
	for _, glob := range []string{"*", "a.b/*", "[a-z]?", "[^/]", "[b-a]", "[^b-a]", "\\\\*", "\u00e9$|(", "[\\]-a]"} {
		f.Add(fmt.Appendf(nil, head+"rules:\n- name: a\n  source: {kind: Secret, namespace: p, name: s}\n  sync: {target: {copyLabels: [\"%[1]s\"], copyAnnotations: [\"%[1]s\", x]}}\n  protect: {}\n", glob))
	}
	for _, selector := range []string{
		"matchLabels: {a.b/C: x, d: ''}", "matchExpressions: [{key: a, operator: Exists}]", "matchExpressions: [{key: a, operator: DoesNotExist}]",
		"matchExpressions: [{key: a, operator: NotIn, values: [b, c]}, {key: b, operator: In, values: [b]}]",
	} {
		for _, mode := range []string{"Enforce", "Warn", "Audit"} {
			f.Add(fmt.Appendf(nil, rule, "selector: {"+selector+"}", "clones: Deny, mode: "+mode))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		parsed, err := config.Parse("f.yaml", raw)
		if err != nil {
			return
		}
		generate(t, parsed)
	})
}
