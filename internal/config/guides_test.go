package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
)

func TestTheGuidesShowValidConfigurations(t *testing.T) {
	guides, err := filepath.Glob("../../deploy/guides/*.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```")
	checked := 0
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		require.NoError(t, err)
		for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(block[2], "kind: Config\n") {
				continue
			}
			unindented := regexp.MustCompile("(?m)^"+block[1]).ReplaceAllString(block[2], "")
			_, err := config.Parse(filepath.Base(guide), []byte(unindented))
			require.NoError(t, err, guide)
			checked++
		}
	}
	require.Equal(t, 6, checked, "configurations in deploy/guides")
}
