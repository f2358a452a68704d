package inspect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/headwater-k8s/headwater/internal/config"
)

func TestTheLastValidConfigurationStandsInForAnInvalidOne(t *testing.T) {
	const (
		header = "apiVersion: headwater.dev/v1alpha1\nkind: Config\n"
		valid  = header + "rules: []\n"
		bad    = header + "rulez: []\nrulers: []\n"
		where  = "ConfigMap own/headwater, key headwater.yaml"
	)
	file := filepath.Join(t.TempDir(), "headwater.yaml")
	require.NoError(t, os.WriteFile(file, []byte(bad), 0o600))
	for sentence, test := range map[string]struct {
		current, last, file string
		fails, warns        string
	}{
		"a valid one is used":                             {current: valid, last: header},
		"an invalid one is replaced, with a warning":      {current: bad, last: valid, warns: where + `:3: rulez: unknown key; did you mean "rules"? (and 1 more); the last valid configuration, ConfigMap own/headwater-last-valid, is used instead`},
		"an invalid one without a last valid one fails":   {current: bad, fails: where + ":3: rulez: unknown key"},
		"a copy that is not valid either is of no use":    {current: bad, last: bad, fails: where + ":3: rulez: unknown key"},
		"an absent one fails":                             {last: valid, fails: "no configuration: there is no " + where},
		"a file that was named is used, and nothing else": {current: valid, last: valid, file: file, fails: file + ":3: rulez: unknown key"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var objects []runtime.Object
			for name, text := range map[string]string{config.ConfigMapName: test.current, config.LastValidName: test.last} {
				if text != "" {
					objects = append(objects, &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: name}, Data: map[string]string{config.ConfigMapKey: text},
					})
				}
			}
			warned := ""
			options := Options{Own: "own", ConfigFile: test.file, Warn: func(text string) { warned = text }}
			loaded, err := loadConfig(t.Context(), fake.NewClientset(objects...), options)
			require.Equal(t, test.warns, warned)
			if test.fails != "" {
				require.ErrorContains(t, err, test.fails)
				return
			}
			require.NoError(t, err)
			require.NotNil(t, loaded)
		})
	}
}
