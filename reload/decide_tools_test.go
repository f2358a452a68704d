package reload

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

type notes map[string]string

const (
	secretNames    = "secret.reloader.stakater.com/reload"
	configMapNames = "configmap.reloader.stakater.com/reload"
	secretAuto     = "secret.reloader.stakater.com/auto"
	secretExcludes = "secrets.exclude.reloader.stakater.com/reload"
)

func bothTools() Settings { return Settings{OptIn: new(true), Compatibility: []Tool{Reloader, Wave}} }

// saying is a Deployment with these annotations, and these on its pod template.
func saying(annotations, template notes) (*metav1.ObjectMeta, *foreign) {
	meta := &metav1.ObjectMeta{Namespace: "ns", Name: "w", Annotations: annotations}
	return meta, readForeign(KindDeployment, "ns", annotations, template)
}

// Secret/ns/s is consumed, ConfigMap/ns/c is, Secret/ns/unused is not.
func TestWhatOwnersAskOfOtherTools(t *testing.T) {
	consumedSecret, consumedConfigMap := "Secret/s", "ConfigMap/c"
	tests := map[string]struct {
		annotations, template notes
		tags                  mark.Tags
		want                  []string
		by                    Tool
		faults                []string
	}{
		"nothing": {annotations: notes{"other": "annotation"}},
		"Reloader: auto covers what is consumed": {
			annotations: notes{"reloader.stakater.com/auto": "true"}, want: []string{consumedSecret, consumedConfigMap}, by: Reloader,
		},
		"Reloader: auto in the words of Go": {
			annotations: notes{"reloader.stakater.com/auto": "T"}, want: []string{consumedSecret, consumedConfigMap}, by: Reloader,
		},
		"Reloader: auto that is off": {annotations: notes{"reloader.stakater.com/auto": "false"}},
		"Reloader: auto that cannot be read": {
			annotations: notes{"reloader.stakater.com/auto": "yes"}, faults: []string{`"yes" is neither true nor false`},
		},
		"Reloader: typed auto": {annotations: notes{secretAuto: "true"}, want: []string{consumedSecret}, by: Reloader},
		"Reloader: typed auto of the other kind": {
			annotations: notes{"configmap.reloader.stakater.com/auto": "true"}, want: []string{consumedConfigMap}, by: Reloader,
		},
		"Reloader: auto on the pod template": {
			template: notes{"reloader.stakater.com/auto": "true"}, want: []string{consumedSecret, consumedConfigMap}, by: Reloader,
		},
		"Reloader: the workload's own auto hides the template's": {
			annotations: notes{"reloader.stakater.com/auto": "false"}, template: notes{"reloader.stakater.com/auto": "true"},
		},
		"Reloader: a key for one kind hides the template's for that kind alone": {
			annotations: notes{secretAuto: "false"}, template: notes{"reloader.stakater.com/auto": "true"},
			want: []string{consumedConfigMap}, by: Reloader,
		},
		"Reloader: an exclusion hides no template": {
			annotations: notes{secretExcludes: "s"}, template: notes{"reloader.stakater.com/auto": "true"},
			want: []string{consumedConfigMap}, by: Reloader,
		},
		"Reloader: exclusions on the pod template are not read": {
			template: notes{"reloader.stakater.com/auto": "true", secretExcludes: "s"}, want: []string{consumedSecret, consumedConfigMap}, by: Reloader,
		},
		"Reloader: names cover what is listed, consumed or not": {
			annotations: notes{secretNames: " unused , s"}, want: []string{consumedSecret, "Secret/unused"}, by: Reloader,
		},
		"Reloader: names are of their kind": {annotations: notes{configMapNames: "s,c"}, want: []string{consumedConfigMap}, by: Reloader},
		"Reloader: names on the pod template": {
			template: notes{secretNames: "unused"}, want: []string{"Secret/unused"}, by: Reloader,
		},
		"Reloader: a pattern is anchored":               {annotations: notes{secretNames: "un.*,.*x"}, want: []string{"Secret/unused"}, by: Reloader},
		"Reloader: a pattern must match the whole name": {annotations: notes{secretNames: "nuse."}},
		"Reloader: one bad pattern leaves the others": {
			annotations: notes{secretNames: "(,unused"}, want: []string{"Secret/unused"}, by: Reloader,
			faults: []string{`"(" is neither a name nor a regular expression`},
		},
		"Reloader: a pattern without end": {
			annotations: notes{secretNames: strings.Repeat("x*", 600)}, faults: []string{"is longer than 512 characters"},
		},
		"Reloader: a pattern that takes long": {
			annotations: notes{secretNames: "x{900}y{900}z{900}"}, faults: []string{"is too costly to match"},
		},
		"Reloader: patterns that take long together": {
			annotations: notes{secretNames: "x{900},y{900},z{900},unuse."}, want: []string{"Secret/unused"}, by: Reloader,
			faults: []string{`"z{900}" is too costly to match, with those before it`},
		},
		"Reloader: too many": {
			annotations: notes{secretNames: strings.Repeat("other,", mark.MaxListed-1) + "s,unused"}, want: []string{consumedSecret}, by: Reloader,
			faults: []string{"it lists 101 objects, of which the first 100 count"},
		},
		"Wave: too many": {
			annotations: notes{"wave.pusher.com/update-on-config-change": "true", "wave.pusher.com/extra-secrets": strings.Repeat("s,", mark.MaxListed) + "unused"},
			want:        []string{consumedSecret, consumedConfigMap}, by: Wave,
			faults: []string{"it lists 101 objects, of which the first 100 count"},
		},
		"Reloader: an empty list": {annotations: notes{secretNames: " , "}},
		"Reloader: excluded, although listed": {
			annotations: notes{secretNames: "s,unused", secretExcludes: "other, s"}, want: []string{"Secret/unused"}, by: Reloader,
		},
		"Reloader: an exclusion is a name, no pattern": {
			annotations: notes{secretAuto: "true", secretExcludes: ".*"}, want: []string{consumedSecret}, by: Reloader,
		},
		"Reloader: ignored, although listed": {
			annotations: notes{secretNames: "s", "reloader.stakater.com/auto": "true"}, tags: mark.Tags{Ignore: true},
		},
		"Reloader: search without a match": {annotations: notes{"reloader.stakater.com/search": "true"}},
		"Reloader: search with a match": {
			annotations: notes{"reloader.stakater.com/search": "true"}, tags: mark.Tags{Match: true},
			want: []string{consumedSecret, consumedConfigMap}, by: Reloader,
		},
		"Reloader: search is nothing but true": {annotations: notes{"reloader.stakater.com/search": "1"}, tags: mark.Tags{Match: true}},
		"Reloader: a match without a search":   {tags: mark.Tags{Match: true}},
		"Reloader: what a CSI driver mounts": {
			annotations: notes{"secretproviderclass.reloader.stakater.com/reload": "x", "secretproviderclass.reloader.stakater.com/auto": "true"},
			faults:      []string{"Headwater does not see", "Headwater does not see"},
		},
		"Reloader: what a CSI driver mounts, on the pod template": {
			template: notes{"secretproviderclass.reloader.stakater.com/reload": "x", "secretproviderclass.reloader.stakater.com/auto": "true"},
			faults:   []string{"Headwater does not see", "Headwater does not see"},
		},
		"Reloader: what a CSI driver mounts, on the pod template of a workload that says otherwise": {
			annotations: notes{"reloader.stakater.com/auto": "false"},
			template:    notes{"secretproviderclass.reloader.stakater.com/auto": "true"},
		},
		"Reloader: how to roll Argo's Rollouts out": {
			annotations: notes{"reloader.stakater.com/rollout-strategy": "restart"},
		},
		"Wave: covers what is consumed": {
			annotations: notes{"wave.pusher.com/update-on-config-change": "true"}, want: []string{consumedSecret, consumedConfigMap}, by: Wave,
		},
		"Wave: nothing but true": {annotations: notes{"wave.pusher.com/update-on-config-change": "1", "wave.pusher.com/extra-secrets": "unused"}},
		"Wave: extras": {
			annotations: notes{"wave.pusher.com/update-on-config-change": "true", "wave.pusher.com/extra-secrets": "unused, ns/s"},
			want:        []string{consumedSecret, consumedConfigMap, "Secret/unused"}, by: Wave,
		},
		"Wave: extras of another namespace are refused": {
			annotations: notes{"wave.pusher.com/update-on-config-change": "true", "wave.pusher.com/extra-configmaps": "other/c,A"},
			want:        []string{consumedSecret, consumedConfigMap}, by: Wave,
			faults: []string{`"other/c" is in another namespace`, `"A" is not NAME`},
		},
		"Wave: the pod template is not read": {template: notes{"wave.pusher.com/update-on-config-change": "true"}},
		"Wave does not know what Reloader ignores": {
			annotations: notes{"wave.pusher.com/update-on-config-change": "true"}, tags: mark.Tags{Ignore: true},
			want: []string{consumedSecret, consumedConfigMap}, by: Wave,
		},
		"both: either is enough": {
			annotations: notes{"wave.pusher.com/update-on-config-change": "true", "wave.pusher.com/extra-secrets": "unused", secretNames: "gone", secretExcludes: "s"},
			want:        []string{consumedSecret, consumedConfigMap, "Secret/unused"}, by: Wave,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			meta, theirs := saying(test.annotations, test.template)
			of, faults := wishesOf(meta, theirs, bothTools())
			require.ElementsMatch(t, test.want, coveredBy(of, test.tags, test.by))
			require.Len(t, faults, len(test.faults))
			for i, problem := range test.faults {
				require.Contains(t, faults[i].problem, problem)
			}
			require.Nil(t, of.keys)
			require.Empty(t, of.how)

			of, faults = wishesOf(meta, theirs, Settings{OptIn: new(true)})
			require.Empty(t, of.asks, "without compatibility nobody listens")
			require.Empty(t, of.named)
			require.Empty(t, faults)
		})
	}
}

// coveredBy are the objects about which of asks, if all of them ask by.
func coveredBy(of wishes, tags mark.Tags, by Tool) (covered []string) {
	for _, name := range []string{"Secret/s", "ConfigMap/c", "Secret/unused"} {
		kind, name, _ := strings.Cut(name, "/")
		ref := object.Ref{Kind: object.Kind(kind), Namespace: "ns", Name: name}
		var references []Reference
		if name != "unused" {
			references = []Reference{{Kind: ref.Kind, Name: name, Mode: EnvFrom}}
		}
		for _, r := range of.referencesTo(ref, references) {
			if asked := of.asked(r, ref, tags, false); asked != nil && asked.tool() == by && asked.action() == Restart {
				covered = append(covered, kind+"/"+name)
				break
			}
		}
	}
	return covered
}

func TestWhoSaysSomethingToHeadwaterSaysNothingToOtherTools(t *testing.T) {
	theirs := notes{
		"reloader.stakater.com/auto": "true", secretNames: "unused", "wave.pusher.com/update-on-config-change": "true",
		"deployment.reloader.stakater.com/pause-period": "5m",
	}
	ref := object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	tests := map[string]struct {
		ours notes
		// by asks about Secret/ns/s, and listened to whom about the others.
		by     Tool
		theirs bool
	}{
		"nothing":                   {by: Reloader, theirs: true},
		"how to reload":             {ours: notes{mark.Reload: "Refresh"}, by: Headwater},
		"for what to reload":        {ours: notes{mark.ReloadOn: "Secret/s"}, by: Headwater},
		"for something else":        {ours: notes{mark.ReloadOn: "Secret/other"}},
		"not to reload":             {ours: notes{mark.Reload: "Off"}},
		"which keys count, alone":   {ours: notes{mark.ReloadKeys: "k"}, by: Reloader, theirs: true},
		"something that is garbled": {ours: notes{mark.Reload: "always"}, by: Reloader, theirs: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			of, _ := wishesOf(together(theirs, test.ours))
			asked := of.asked(Reference{Kind: object.Secret, Name: "s", Mode: EnvFrom}, ref, mark.Tags{}, false)
			if test.by == "" {
				require.Nil(t, asked)
			} else {
				require.Equal(t, test.by, asked.tool())
			}
			require.Equal(t, test.theirs, len(of.named) > 0)
			require.Equal(t, test.theirs, of.minInterval == 5*time.Minute)
		})
	}
}

func together(all ...notes) (*metav1.ObjectMeta, *foreign, Settings) {
	annotations := notes{}
	for _, some := range all {
		for key, value := range some {
			annotations[key] = value
		}
	}
	meta, theirs := saying(annotations, nil)
	return meta, theirs, bothTools()
}

func TestToolsThatNobodyHonoursAreNamed(t *testing.T) {
	_, theirs := saying(notes{"wave.pusher.com/update-on-config-change": "true"}, notes{"reloader.stakater.com/auto": "true"})
	require.Equal(t, []Tool{Reloader, Wave}, theirs.unheard(Settings{}))
	require.Equal(t, []Tool{Reloader}, theirs.unheard(Settings{Compatibility: []Tool{Wave}}))
	require.Empty(t, theirs.unheard(bothTools()))
	_, nothing := saying(nil, nil)
	require.Empty(t, nothing.unheard(Settings{}))
}

func TestNobodyOptsInWhereTheFileSaysSo(t *testing.T) {
	meta, theirs := saying(notes{mark.Reload: "Restart", mark.ReloadOn: "Secret/s"}, nil)
	of, faults := wishesOf(meta, theirs, Settings{OptIn: new(false)})
	require.Empty(t, faults)
	require.Empty(t, of.asks)
	require.Equal(t, Restart, of.how, "a rule's action is theirs to override all the same")
}

func TestPausePeriodIsTheLeastTimeBetweenRestartsOfADeployment(t *testing.T) {
	tests := map[string]struct {
		kind  Kind
		value string
		want  time.Duration
		fault string
	}{
		"a time":                      {KindDeployment, "5m", 5 * time.Minute, ""},
		"zero":                        {KindDeployment, "0s", 0, "is not a time above zero"},
		"below zero":                  {KindDeployment, "-1s", 0, "is not a time above zero"},
		"a number":                    {KindDeployment, "5", 0, "is not a time above zero"},
		"other kinds are not delayed": {KindStatefulSet, "5m", 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			annotations := notes{mark.ReloaderPausePeriod: test.value}
			theirs := readForeign(test.kind, "ns", annotations, nil)
			of, faults := wishesOf(&metav1.ObjectMeta{Annotations: annotations}, theirs, bothTools())
			require.Equal(t, test.want, of.minInterval)
			if test.fault == "" {
				require.Empty(t, faults)
			} else {
				require.ErrorContains(t, faultError(faults), test.fault)
			}
		})
	}
}

type problem string

func (p problem) Error() string { return string(p) }

func faultError(faults []fault) error { return problem(faults[0].problem) }

func FuzzForeignAnnotations(f *testing.F) {
	f.Add("a,b.*,(", "true", "ns/x,y", "5m")
	f.Add(",, ,", "T", "other/x", "-1s")
	f.Fuzz(func(t *testing.T, names, truth, extras, pause string) {
		annotations := notes{
			secretNames: names, configMapNames: names, secretExcludes: names, mark.ReloaderAuto: truth, mark.WaveUpdate: "true",
			mark.WaveExtraSecrets: extras, mark.WaveExtraConfigMaps: names, mark.ReloaderPausePeriod: pause,
		}
		of, faults := wishesOf(together(annotations))
		require.GreaterOrEqual(t, of.minInterval, time.Duration(0))
		for _, ref := range of.named {
			require.Equal(t, "ns", ref.Namespace, "never an object of another namespace")
			_, err := object.ParseRef(ref.String())
			require.NoError(t, err)
		}
		for _, fault := range faults {
			require.Less(t, len("The annotation  is ignored in part: ")+len(fault.annotation)+len(fault.problem), 1024, "the API server takes no longer note")
		}
	})
}

func TestAutoOfReloaderIsAboutSecretProviderClassesToo(t *testing.T) {
	mounts := []Reference{{Kind: object.Secret, Name: "s", Mode: Env}, {Kind: secretProviderClass, Name: "vault", Mode: Provided}}
	auto := notes{"reloader.stakater.com/auto": "true"}
	tests := map[string]struct {
		annotations, template notes
		references            []Reference
		settings              Settings
		want                  bool
	}{
		"on the workload":                {annotations: auto, references: mounts, settings: bothTools(), want: true},
		"on the pod template":            {template: auto, references: mounts, settings: bothTools(), want: true},
		"without such a volume":          {annotations: auto, references: mounts[:1], settings: bothTools()},
		"for Secrets alone":              {annotations: notes{secretAuto: "true"}, references: mounts, settings: bothTools()},
		"where Reloader is not honoured": {annotations: auto, references: mounts, settings: Settings{OptIn: new(true)}},
		"where Headwater is asked in its place": {
			annotations: notes{"reloader.stakater.com/auto": "true", mark.Reload: "Auto"}, references: mounts, settings: bothTools(),
		},
		"of Wave, which does not know them": {
			annotations: notes{"wave.pusher.com/update-on-config-change": "true"}, references: mounts, settings: bothTools(),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			meta, theirs := saying(test.annotations, test.template)
			of, _ := wishesOf(meta, theirs, test.settings)
			unseen := (&Workload{ObjectMeta: *meta, References: test.references}).unseen(of)
			require.Equal(t, test.want, len(unseen) == 1)
			if test.want {
				require.True(t, unseen[0].inPart)
				require.Equal(t, "Headwater does not see what a Secrets Store CSI driver mounts: SecretProviderClass vault", unseen[0].problem)
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
		"headwater.dev/enabled":     "Headwater reads headwater.dev/reload, headwater.dev/reload-on, headwater.dev/reload-keys",
	} {
		faults := (&Workload{Unknown: []string{annotation}}).misspelt()
		require.Len(t, faults, 1)
		require.Equal(t, annotation, faults[0].annotation)
		require.Equal(t, "there is none of that name; "+want, faults[0].problem)
	}
}
