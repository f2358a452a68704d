package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// file is a configuration file with these lines below its header, so that the
// first of them is line 3.
func file(lines ...string) []byte {
	header := []string{"apiVersion: headwater.dev/v1alpha1", "kind: Config"}
	return []byte(strings.Join(append(header, lines...), "\n") + "\n")
}

// oneRule is a file whose only rule has these lines below its source, so that
// the first of them is line 6.
func oneRule(lines ...string) []byte {
	head := []string{"rules:", "- name: a", "  source: {kind: Secret, namespace: platform, name: blogsecret}"}
	return file(append(head, lines...)...)
}

func parse(t *testing.T, raw []byte) *config.Config {
	t.Helper()
	parsed, err := config.Parse("headwater.yaml", raw)
	require.NoError(t, err)
	return parsed
}

func TestParseFillsInEveryDefault(t *testing.T) {
	yes := true
	want := config.Rule{
		Name:   "a",
		Source: rules.Source{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"},
		Sync: &syncspec.Config{
			Namespaces:           rules.Namespaces{Include: []string{"*"}, Exclude: []string{"kube-*"}},
			OnConflict:           syncspec.ConflictSkip,
			OnSourceDeleted:      syncspec.Retain,
			OnRuleRemoved:        syncspec.Retain,
			OnNamespaceUnmatched: syncspec.Delete,
			RemoveAfter:          &metav1.Duration{Duration: 30 * time.Second},
			History:              new(int),
		},
		Protect: &protectspec.Config{
			Operations:     protectspec.Operations(),
			Mode:           protectspec.Enforce,
			Clones:         protectspec.Revert,
			Allow:          protectspec.Allow{ClusterRoles: []string{"cluster-admin"}},
			GuardNamespace: &yes,
		},
		Reload: &reloadspec.Config{
			Action: reloadspec.Auto, Debounce: &metav1.Duration{Duration: time.Second},
			MinInterval: &metav1.Duration{Duration: 30 * time.Second}, MaxRestartsPerHour: new(10),
		},
	}
	got := parse(t, oneRule("  sync: {}", "  protect: {}", "  reload: {}"))
	require.Equal(t, []config.Rule{want}, got.Rules)
	require.Equal(t, protectspec.Settings{Engine: protectspec.EngineBoth}, got.Protect)
	require.Equal(t, reloadspec.Settings{
		OptIn: new(true), MinInterval: &metav1.Duration{Duration: 30 * time.Second}, MaxRestartsPerHour: new(10),
		MaxConcurrentRollouts: new(50), MaxConcurrentRolloutsPerNamespace: new(10),
		ConfirmRefreshAfter: &metav1.Duration{Duration: 2 * time.Second},
	}, got.Reload)
}

func TestParseFillsInWhatIsInside(t *testing.T) {
	got := parse(t, file("rules:",
		"- name: a",
		"  source: {kind: Secret, namespace: p, name: x}",
		"  reload: {then: {httpPost: {port: 80}}}",
		"reload: {windows: [{schedule: 0 2 * * 6, duration: 4h}]}"))
	require.Equal(t, &reloadspec.HTTPPost{Port: 80, Path: "/"}, got.Rules[0].Reload.Then.HTTPPost)
	require.Equal(t, []reloadspec.Window{
		{Schedule: "0 2 * * 6", Duration: metav1.Duration{Duration: 4 * time.Hour}, TimeZone: "UTC"},
	}, got.Reload.Windows)
}

func TestParseLeavesAbsentSectionsOut(t *testing.T) {
	rule := parse(t, oneRule("  reload: {}")).Rules[0]
	require.Nil(t, rule.Sync)
	require.Nil(t, rule.Protect)
	require.NotNil(t, rule.Reload)
}

func TestParseAcceptsAFileWithoutRules(t *testing.T) {
	require.Empty(t, parse(t, file()).Rules)
	require.Empty(t, parse(t, file("rules: []", "...")).Rules)
}

func TestParseKeepsWhatWasWritten(t *testing.T) {
	type labels = map[string]string
	matchLabels := func(c *config.Config) labels { return c.Rules[0].Sync.Namespaces.Selector.MatchLabels }
	targetLabels := func(c *config.Config) labels { return c.Rules[0].Sync.Target.Labels }
	tests := map[string]struct {
		sync []string
		read func(*config.Config) labels
		want labels
	}{
		"capitals, dots and slashes in a selector": {
			sync: []string{"    namespaces:", "      selector:", "        matchLabels:", "          app.kubernetes.io/Name: Blog.One"},
			read: matchLabels,
			want: labels{"app.kubernetes.io/Name": "Blog.One"},
		},
		"dots in the keys of labels": {
			sync: []string{"    target: {labels: {team.example.com: a, Team: b, team: c}}"},
			read: targetLabels,
			want: labels{"team.example.com": "a", "Team": "b", "team": "c"},
		},
		"words that older YAML takes for booleans": {
			sync: []string{"    target: {labels: {on: yes, y: n, off: No}}"},
			read: targetLabels,
			want: labels{"on": "yes", "y": "n", "off": "No"},
		},
		"quoted numbers and unquoted dates": {
			sync: []string{`    target: {labels: {"1": "0123", since: 2024-01-02, zip: "1e3"}}`},
			read: targetLabels,
			want: labels{"1": "0123", "since": "2024-01-02", "zip": "1e3"},
		},
		"the empty text": {
			sync: []string{`    target: {labels: {empty: ""}}`},
			read: targetLabels,
			want: labels{"empty": ""},
		},
		"anchors and aliases": {
			sync: []string{"    namespaces: {selector: {matchLabels: &team {team: blog}}}", "    target: {labels: *team}"},
			read: targetLabels,
			want: labels{"team": "blog"},
		},
		"merged mappings, in which the nearer key wins": {
			sync: []string{
				"    namespaces: {selector: {matchLabels: &one {a: one, b: one}}}",
				"    target: {labels: {<<: [*one, {b: two, c: two}], a: here}}",
			},
			read: targetLabels,
			want: labels{"a": "here", "b": "one", "c": "two"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := parse(t, oneRule(append([]string{"  sync:"}, test.sync...)...))
			require.Equal(t, test.want, test.read(got))
		})
	}
}

func TestParseTellsNothingFromEverything(t *testing.T) {
	got := parse(t, oneRule("  sync: {namespaces: {exclude: []}}", "  protect: {guardNamespace: false, allow: {clusterRoles: []}}"))
	require.Equal(t, []string{}, got.Rules[0].Sync.Namespaces.Exclude)
	require.Equal(t, []string{}, got.Rules[0].Protect.Allow.ClusterRoles)
	require.False(t, *got.Rules[0].Protect.GuardNamespace)
}

func TestRevisionFollowsTheBytes(t *testing.T) {
	one, same, other := parse(t, file()), parse(t, file()), parse(t, file("# a comment"))
	require.NotEmpty(t, one.Revision)
	require.Equal(t, one.Revision, same.Revision)
	require.NotEqual(t, one.Revision, other.Revision)
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headwater.yaml")
	_, err := config.Load(path)
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, os.WriteFile(path, oneRule("  sync: {}"), 0o600))
	loaded, err := config.Load(path)
	require.NoError(t, err)
	require.Equal(t, "a", loaded.Rules[0].Name)

	require.NoError(t, os.WriteFile(path, oneRule("  sync:"), 0o600))
	_, err = config.Load(path)
	var problems config.Problems
	require.ErrorAs(t, err, &problems)
	require.Equal(t, config.Problems{{
		File: path, Line: 6, Path: "rules[0].sync",
		Message: "has no value; write {} for all defaults, or remove it",
	}}, problems)
}
