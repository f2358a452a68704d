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

func TestTheDocumentsShowValidConfigurations(t *testing.T) {
	documents, err := filepath.Glob("../../deploy/guides/*.md")
	require.NoError(t, err)
	documents = append(documents, "../../README.md", "../../configs/README.md")
	blocks := regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```")
	checked := 0
	for _, document := range documents {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(block[2], "kind: Config\n") {
				continue
			}
			unindented := regexp.MustCompile("(?m)^"+block[1]).ReplaceAllString(block[2], "")
			_, err := config.Parse(filepath.Base(document), []byte(unindented))
			require.NoError(t, err, document)
			checked++
		}
	}
	require.Equal(t, 9, checked, "configurations in the guides and the two READMEs")
}
