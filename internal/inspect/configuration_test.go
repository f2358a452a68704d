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
		one    = header + "rules: [{name: a, source: {kind: Secret, namespace: p, name: a}, sync: {}}]\n"
		where  = "ConfigMap own/headwater, key headwater.yaml"
	)
	file, empty := filepath.Join(t.TempDir(), "headwater.yaml"), filepath.Join(t.TempDir(), "headwater.yaml")
	require.NoError(t, os.WriteFile(file, []byte(bad), 0o600))
	require.NoError(t, os.WriteFile(empty, []byte(valid), 0o600))
	held := "the configuration is held: it has no rule. Put back, or name in removedRules: a; or run `headwater approve --configuration " + config.RevisionOf([]byte(valid)) + "`"
	for sentence, test := range map[string]struct {
		current, last, file string
		fails, warns        string
	}{
		"a valid one is used":                             {current: valid, last: valid},
		"an invalid one is replaced, with a warning":      {current: bad, last: valid, warns: where + `:3: rulez: unknown key; did you mean "rules"? (and 1 more); the last valid configuration, Secret own/headwater-last-valid, is used instead`},
		"a held one is replaced, with a warning":          {current: valid, last: one, warns: held + "; the last valid configuration, Secret own/headwater-last-valid, is used instead"},
		"an invalid one without a last valid one fails":   {current: bad, fails: where + ":3: rulez: unknown key"},
		"a copy that is not valid either is of no use":    {current: bad, last: bad, fails: where + ":3: rulez: unknown key"},
		"a copy that cannot be read is reported":          {current: valid, last: "novelty: {}", warns: "whether Headwater put this configuration in force is not known: Secret own/headwater-last-valid: another version of Headwater wrote it"},
		"no copy is no doubt":                             {current: valid},
		"an absent one fails":                             {last: valid, fails: "no configuration: there is no " + where},
		"a file that would be held is used, and reported": {current: one, last: one, file: empty, warns: "Headwater would not put this file in force: " + held},
		"a file that was named is used, and nothing else": {current: valid, last: valid, file: file, fails: file + ":3: rulez: unknown key"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var objects []runtime.Object
			if test.current != "" {
				objects = append(objects, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: config.ConfigMapName}, Data: map[string]string{config.ConfigMapKey: test.current},
				})
			}
			if test.last != "" {
				objects = append(objects, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: config.LastValidName}, Data: map[string][]byte{config.ConfigMapKey: []byte(test.last)},
				})
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
