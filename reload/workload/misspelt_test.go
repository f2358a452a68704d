package workload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestAutoOfReloaderIsAboutSecretProviderClassesToo(t *testing.T) {
	mounts := []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.Env}, {Kind: refs.SecretProviderClass, Name: "vault", Mode: refs.Provided}}
	auto := reloadtest.Notes{"reloader.stakater.com/auto": "true"}
	tests := map[string]struct {
		annotations, template reloadtest.Notes
		references            []refs.Reference
		settings              spec.Settings
		want                  bool
	}{
		"on the workload":                {annotations: auto, references: mounts, settings: reloadtest.BothTools(), want: true},
		"on the pod template":            {template: auto, references: mounts, settings: reloadtest.BothTools(), want: true},
		"without such a volume":          {annotations: auto, references: mounts[:1], settings: reloadtest.BothTools()},
		"for Secrets alone":              {annotations: reloadtest.Notes{reloadtest.SecretAuto: "true"}, references: mounts, settings: reloadtest.BothTools()},
		"where Reloader is not honoured": {annotations: auto, references: mounts, settings: spec.Settings{OptIn: new(true)}},
		"where Headwater is asked in its place": {
			annotations: reloadtest.Notes{"reloader.stakater.com/auto": "true", mark.Reload: "Auto"}, references: mounts, settings: reloadtest.BothTools(),
		},
		"of Wave, which does not know them": {
			annotations: reloadtest.Notes{"wave.pusher.com/update-on-config-change": "true"}, references: mounts, settings: reloadtest.BothTools(),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			meta, theirs := reloadtest.Saying(test.annotations, test.template)
			of, _ := optin.ReadPreferences(meta, theirs, test.settings)
			unseen := (&workload.Workload{ObjectMeta: *meta, References: test.references}).Unseen(of)
			require.Equal(t, test.want, len(unseen) == 1)
			if test.want {
				require.True(t, unseen[0].InPart)
				require.Equal(t, "Headwater does not see what a Secrets Store CSI driver mounts: SecretProviderClass vault", unseen[0].Problem)
			}
		})
	}
}

func TestAMisspeltAnnotationHasANearestName(t *testing.T) {
	for annotation, want := range map[string]string{
		"headwater.dev/relaod":      "did you mean headwater.dev/reload?",
		"headwater.dev/Reload":      "did you mean headwater.dev/reload?",
		"headwater.dev/reload-kyes": "did you mean headwater.dev/reload-keys?",
		"headwater.dev/reload_on":   "did you mean headwater.dev/reload-on?",
		"headwater.dev/enabled":     "Headwater reads headwater.dev/reload, headwater.dev/reload-on, headwater.dev/reload-keys, headwater.dev/reload-debounce, headwater.dev/reload-windows",
	} {
		consumer := reloadtest.Web()
		consumer.Annotations = map[string]string{annotation: "x"}
		kept, err := workload.KeepRolling(consumer, workload.ActedOn)
		require.NoError(t, err)
		faults := kept.Misspelt
		require.Len(t, faults, 1)
		require.Equal(t, annotation, faults[0].Annotation)
		require.Equal(t, "no annotation has this name; "+want, faults[0].Problem)
	}
}
