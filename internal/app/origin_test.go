package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/config"
)

func TestWhetherAFileComesFromTheConfigMap(t *testing.T) {
	const text = "kind: Config\n"
	holding := &corev1.ConfigMap{Data: map[string]string{config.ConfigMapKey: text}}
	for sentence, test := range map[string]struct {
		content   string
		mounted   bool
		configMap *corev1.ConfigMap
		want      bool
	}{
		"the same content":                     {content: text, configMap: holding, want: true},
		"another content":                      {content: "kind: Other\n", configMap: holding},
		"an older version in a mounted folder": {content: "kind: Other\n", mounted: true, configMap: holding, want: true},
		"a ConfigMap that has no such key":     {content: "", configMap: &corev1.ConfigMap{}},
		"a mounted folder without that key":    {content: text, mounted: true, configMap: &corev1.ConfigMap{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			folder := t.TempDir()
			file := filepath.Join(folder, config.ConfigMapKey)
			require.NoError(t, os.WriteFile(file, []byte(test.content), 0o600))
			if test.mounted {
				require.NoError(t, os.Symlink(folder, filepath.Join(folder, "..data")))
			}
			require.Equal(t, test.want, comesFrom(file, test.configMap))
		})
	}
}

func TestAnEventSaysWhereAConfigurationIsInvalidAndNotWhatItSays(t *testing.T) {
	problems := config.Problems{{Line: 3, Path: "notify[0].url", Message: `"t0ken" cannot be used`}, {Line: 7, Message: "is not YAML"}}
	require.Equal(t, "line 3 notify[0].url, line 7", whereInvalid(problems))
	require.Equal(t, "it cannot be read", whereInvalid(os.ErrNotExist))
}
