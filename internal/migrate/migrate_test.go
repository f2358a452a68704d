package migrate_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/migrate"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// translated reads a file of testdata, and the configuration that comes of it
// as Headwater would.
func translated(t *testing.T, file string) (migrate.Result, string, *config.Config) {
	t.Helper()
	raw, err := os.Open(filepath.Join("testdata", file))
	require.NoError(t, err)
	t.Cleanup(func() { _ = raw.Close() })
	return translatedFrom(t, raw)
}

func translatedFrom(t *testing.T, raw interface{ Read([]byte) (int, error) }) (migrate.Result, string, *config.Config) {
	t.Helper()
	var in migrate.Input
	require.NoError(t, in.Read("test", raw))
	require.Empty(t, in.Unread)
	result := migrate.Translate(in)
	file, err := result.Render()
	require.NoError(t, err)
	return result, string(file), parsedFrom(t, string(file))
}

func parsedFrom(t *testing.T, file string) *config.Config {
	t.Helper()
	parsed, err := config.Parse("headwater.yaml", []byte(file))
	require.NoError(t, err, file)
	return parsed
}

// cluster are namespaces that tell patterns and labels apart.
var cluster = map[string]map[string]string{
	"platform": {}, "team-a": {}, "team-b": {"pull": "yes", "registry": "own"}, "team-c": {"stage": "prod"},
	"team-legacy": {"pull": "yes"}, "team-old-1": {}, "shop": {"registry": "shared"}, "elsewhere": {"pull": "yes", "flags": "on"},
	"kube-system": {"pull": "yes", "flags": "on"}, "kyverno": {"pull": "yes"}, "audit": {}, "corp": {"trust": "corporate", "stage": "test"},
	"off": {"flags": "off"}, "app-7": {}, "app-1234": {}, "app-12345": {}, "app-x": {}, "edge-12": {}, "edge-": {}, "team-x": {}, "intruder": {},
}

// selected are the namespaces that get a clone, as the compiled rule says.
func selected(t *testing.T, rule config.Rule) []string {
	t.Helper()
	require.Equal(t, syncspec.ConflictAdoptIfEqual, rule.Sync.OnConflict)
	matcher, err := rule.Sync.Namespaces.Compile("headwater-system", rule.Source.Namespace)
	require.NoError(t, err)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(cluster)) {
		if matcher.Matches(name, cluster[name]) {
			names = append(names, name)
		}
	}
	return names
}

func TestClonesGoWhereTheToolsPutThemAndNowhereElse(t *testing.T) {
	type clones struct {
		rule, source, target string
		in                   []string
	}
	for file, want := range map[string][]clones{
		"kyverno-clone.yaml": {
			{"regcred", "Secret/platform/regcred", "", []string{"shop", "team-a", "team-c", "team-x"}},
			{"regcred-2", "Secret/platform/regcred", "", []string{"elsewhere"}},
		},
		"kyverno-list.yaml": {
			{"platform-spread-yes", "Secret/platform/(spread=yes)", "", []string{"team-c"}},
			{"platform-spread-yes-2", "ConfigMap/platform/(spread=yes)", "", []string{"team-c"}},
		},
		"kyverno-everywhere.yaml": {
			{"corporate-ca", "ConfigMap/platform/corporate-ca", "", slices.DeleteFunc(slices.Sorted(maps.Keys(cluster)), func(name string) bool {
				return slices.Contains([]string{"platform", "kube-system", "kyverno"}, name)
			})},
		},
		"kyverno-partly.yaml": nil,
		"kyverno-cel.yaml": {
			{"registry", "Secret/platform/registry", "", []string{"elsewhere"}},
			{"mirrors", "ConfigMap/platform/mirrors", "", []string{"elsewhere"}},
			{"two", "Secret/platform/two", "", []string{"team-a", "team-b"}},
		},
		"kyverno-cel-partly.yaml": nil,
		"reflector.yaml": {
			{"ca", "ConfigMap/platform/ca", "", []string{"audit"}},
			{"ca-2", "ConfigMap/platform/ca", "", []string{"corp"}},
			{"wildcard-tls", "Secret/platform/wildcard-tls", "", []string{"edge-12", "shop", "team-a", "team-b", "team-c"}},
			{"wildcard-tls-2", "Secret/platform/wildcard-tls", "my-tls", []string{"team-x"}},
		},
		"replicator.yaml": {
			{"flags", "ConfigMap/platform/flags", "", []string{"app-1234", "app-7", "kube-system", "team-a"}},
			{"flags-2", "ConfigMap/platform/flags", "", []string{"elsewhere"}},
			{"bare", "Secret/platform/bare", "", []string{"team-a", "team-b"}},
			{"pulled", "Secret/platform/pulled", "", []string{"team-a", "team-b"}},
		},
	} {
		t.Run(file, func(t *testing.T) {
			_, text, parsed := translated(t, file)
			var got []clones
			for _, rule := range parsed.Rules {
				got = append(got, clones{rule.Name, rule.Source.String(), rule.Sync.Target.Name, selected(t, rule)})
			}
			require.Equal(t, want, got)
			_, err := parsed.Compile("headwater-system")
			require.NoError(t, err)
			require.NotContains(t, text, "c2VjcmV0LXZhbHVl", "no value leaves")
		})
	}
}

func TestWhoMayEditIsWhoMightBefore(t *testing.T) {
	both := []protectspec.Operation{protectspec.Update, protectspec.Delete}
	for file, want := range map[string]*protectspec.Config{
		"kyverno-clone.yaml": {
			Operations: both, Mode: protectspec.Enforce, Message: "Ask the platform team.", Clones: protectspec.Revert,
			Allow: protectspec.Allow{
				ClusterRoles: []string{"cluster-admin", "platform-admin"}, Users: []string{"ada@example.com"}, Groups: []string{"platform-team"},
				ServiceAccounts: []protectspec.ServiceAccount{{Namespace: "ci", Name: "rotator"}},
			},
		},
		"kyverno-list.yaml": {
			Operations: both, Mode: protectspec.Enforce, Clones: protectspec.Revert, Allow: protectspec.Allow{ClusterRoles: []string{}},
		},
		"kyverno-everywhere.yaml": {
			Operations: []protectspec.Operation{protectspec.Delete}, Mode: protectspec.Warn, Clones: protectspec.Deny,
			Allow: protectspec.Allow{ClusterRoles: []string{"cluster-admin"}},
		},
		"kyverno-cel.yaml": {
			Operations: both, Mode: protectspec.Enforce, Message: "Ask the platform team.", Clones: protectspec.Revert,
			Allow: protectspec.Allow{
				ClusterRoles: []string{}, Users: []string{"bob@example.com", "ada@example.com"}, Groups: []string{"platform-team"},
				ServiceAccounts: []protectspec.ServiceAccount{{Namespace: "ci", Name: "rotator"}},
			},
		},
		"kyverno-cel-namespaced.yaml": {
			Operations: []protectspec.Operation{protectspec.Delete}, Mode: protectspec.Warn, Message: "Not this one.", Clones: protectspec.Revert,
			Allow: protectspec.Allow{ClusterRoles: []string{}},
		},
	} {
		t.Run(file, func(t *testing.T) {
			_, _, parsed := translated(t, file)
			guard := true
			want.GuardNamespace = &guard
			require.Equal(t, want, parsed.Rules[0].Protect)
			for _, rule := range parsed.Rules[1:] {
				require.Nil(t, rule.Protect)
			}
		})
	}
}

func TestRestartsReachNoMoreThanBefore(t *testing.T) {
	_, text, parsed := translated(t, "kyverno-clone.yaml")
	for _, rule := range parsed.Rules {
		require.Equal(t, reloadspec.Restart, rule.Reload.Action)
	}
	require.NotContains(t, text, "NOT IN FORCE")
	result, text, parsed := translated(t, "kyverno-everywhere.yaml")
	require.Nil(t, parsed.Rules[0].Reload, "StatefulSets did not restart")
	require.Contains(t, text, "  # reload:\n  #   action: Restart\n")
	require.False(t, result.Carried())
}

// Without the comment signs, the file can be read.
func TestCommentedRulesAreRules(t *testing.T) {
	for _, file := range []string{"kyverno-partly.yaml", "kyverno-cel-partly.yaml", "reflector.yaml", "replicator.yaml"} {
		_, text, before := translated(t, file)
		var lines []string
		inRule := false
		for line := range strings.Lines(strings.Replace(text, "rules: []", "rules:", 1)) {
			inRule = strings.HasPrefix(line, "# - name: ") || inRule && strings.HasPrefix(line, "# ")
			if inRule {
				line = strings.TrimPrefix(line, "# ")
			}
			lines = append(lines, line)
		}
		after, err := config.Parse(file, []byte(strings.Join(lines, "")))
		require.NoError(t, err)
		require.Greater(t, len(after.Rules), len(before.Rules))
	}
}

// What check would complain about is not what a translation should be.
func TestOneSourceIsClonedIntoANamespaceByOneRule(t *testing.T) {
	for sentence, test := range map[string]struct {
		annotations string
		want        map[string][]string
	}{
		"by names and by labels": {
			"replicator.v1.mittwald.de/replicate-to: \"team-b,shop\", replicator.v1.mittwald.de/replicate-to-matching: \"pull=yes\"",
			map[string][]string{"base": {"shop", "team-b"}, "base-2": {"elsewhere", "kyverno", "team-legacy"}},
		},
		"by a pattern and by labels": {
			"replicator.v1.mittwald.de/replicate-to: \"team-.*\", replicator.v1.mittwald.de/replicate-to-matching: \"pull=yes\"",
			map[string][]string{
				"base": {"team-a", "team-b", "team-c", "team-legacy", "team-old-1", "team-x"}, "base-2": {"elsewhere", "kyverno"},
			},
		},
		"by what Reflector is allowed, and what it mirrors by itself": {
			"reflector.v1.k8s.emberstack.com/reflection-allowed: \"true\", reflector.v1.k8s.emberstack.com/reflection-auto-enabled: \"true\", " +
				"reflector.v1.k8s.emberstack.com/reflection-allowed-namespaces: \"team-a,team-b,shop\", " +
				"reflector.v1.k8s.emberstack.com/reflection-auto-namespaces: team-a, " +
				"reflector.v1.k8s.emberstack.com/reflection-auto-namespaces-selector: \"pull=yes\"",
			map[string][]string{"base": {"team-a"}, "base-2": {"team-b"}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, text, parsed := translatedFrom(t, strings.NewReader(
				"apiVersion: v1\nkind: Secret\nmetadata:\n  namespace: platform\n  name: base\n  annotations: {"+test.annotations+"}\n"))
			got := map[string][]string{}
			for _, rule := range parsed.Rules {
				got[rule.Name] = selected(t, rule)
			}
			require.Equal(t, test.want, got, text)
			require.Empty(t, parsed.Notes, text)
		})
	}
}

func TestKyvernosOlderWordForExistingNamespacesCounts(t *testing.T) {
	const policy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  generateExistingOnPolicyUpdate: true
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      apiVersion: v1
      kind: Secret
      name: base
      namespace: "{{request.object.metadata.name}}"
      synchronize: true
      clone: {namespace: platform, name: base}
`
	_, text, _ := translatedFrom(t, strings.NewReader(policy))
	require.NotContains(t, text, "generateExisting is false")
	_, text, _ = translatedFrom(t, strings.NewReader(strings.Replace(policy, "PolicyUpdate: true", "PolicyUpdate: false", 1)))
	require.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(text, "#", "")), " "), "generateExisting is false")
}

func TestTheSameInputGivesTheSameFile(t *testing.T) {
	for _, file := range []string{"kyverno-clone.yaml", "reflector.yaml", "replicator.yaml"} {
		_, first, _ := translated(t, file)
		for range 20 {
			_, again, _ := translated(t, file)
			require.Equal(t, first, again)
		}
	}
}

func TestClonesAreNoSources(t *testing.T) {
	for sentence, metadata := range map[string]string{
		"of Kyverno":   `labels: {generate.kyverno.io/policy-name: p}`,
		"of Headwater": `labels: {headwater.dev/clone: "true"}`,
	} {
		t.Run(sentence, func(t *testing.T) {
			result, _, _ := translatedFrom(t, strings.NewReader("apiVersion: v1\nkind: Secret\nmetadata:\n  namespace: a\n  name: b\n  "+metadata+
				"\n  annotations: {replicator.v1.mittwald.de/replicate-to: c}\n"))
			require.True(t, result.Empty())
		})
	}
}
