package config_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/configs"
	"github.com/headwater-k8s/headwater/internal/config"
)

func blogsecret(t *testing.T) *config.Config {
	t.Helper()
	return parse(t, file("rules:", "- name: blogsecret", "  source: {kind: Secret, namespace: platform, name: blogsecret}",
		"  sync: {}", "  protect: {}", "  reload: {}"))
}

func TestTheSampleIsTheDefaults(t *testing.T) {
	require.True(t, strings.HasPrefix(string(configs.Sample()), "# yaml-language-server: $schema=./headwater.schema.json\n"))
	requireSame(t, blogsecret(t), parse(t, configs.Sample()))
}

// The sample's comments at the place of keys show defaults. Taking the
// comment signs away must change nothing.
func TestTheSamplesCommentsTellTheTruth(t *testing.T) {
	sample := string(configs.Sample())
	uncommented := regexp.MustCompile(`(?m)^    # `).ReplaceAllString(sample, "    ")
	uncommented = strings.ReplaceAll(uncommented, ": {}\n", ":\n")
	require.Greater(t, strings.Count(sample, "    # "), 10)
	requireSame(t, blogsecret(t), parse(t, []byte(uncommented)))
}

func TestTheReferenceIsTheDefaults(t *testing.T) {
	raw, err := os.ReadFile("../../configs/reference.yaml")
	require.NoError(t, err)
	got := parse(t, raw)
	got.Rules[0].Sync.Delivery, got.Rules[0].Sync.History = nil, new(int) // there is no delivery by default
	got.Rules[0].Sync.MaxDeleteFraction = nil                             // it is that of safety
	requireSame(t, blogsecret(t), got)
}

// requireSame compares meanings: what is empty is as good as what is left out.
func requireSame(t *testing.T, want, got *config.Config) {
	t.Helper()
	require.Equal(t, meaning(t, want), meaning(t, got))
}

func meaning(t *testing.T, c *config.Config) any {
	t.Helper()
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(raw, &value))
	return withoutEmpty(value)
}

func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, inner := range value {
			if inner = withoutEmpty(inner); inner != nil {
				kept[key] = inner
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case []any:
		if len(value) == 0 {
			return nil
		}
		for i := range value {
			value[i] = withoutEmpty(value[i])
		}
	case string:
		if value == "" {
			return nil
		}
	}
	return value
}
