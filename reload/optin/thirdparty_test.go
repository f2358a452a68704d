package optin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Secret/ns/s is consumed, ConfigMap/ns/c is, Secret/ns/unused is not.
func TestWhatOwnersAskOfOtherTools(t *testing.T) {
	type notes = reloadtest.Notes
	const auto, wave = "reloader.stakater.com/auto", "wave.pusher.com/update-on-config-change"
	const consumedSecret, consumedConfigMap = "Secret/s", "ConfigMap/c"
	both, secretAlone, configMapAlone, unused := []string{consumedSecret, consumedConfigMap}, []string{consumedSecret}, []string{consumedConfigMap}, []string{"Secret/unused"}
	tests := map[string]struct {
		annotations, template notes
		tags                  mark.Tags
		want                  []string
		by                    spec.Tool
		faults                []string
	}{
		"nothing":                                                {annotations: notes{"other": "annotation"}},
		"Reloader: auto covers what is consumed":                 {annotations: notes{auto: "true"}, want: both, by: spec.Reloader},
		"Reloader: auto in the words of Go":                      {annotations: notes{auto: "T"}, want: both, by: spec.Reloader},
		"Reloader: auto that is off":                             {annotations: notes{auto: "false"}},
		"Reloader: auto that cannot be read":                     {annotations: notes{auto: "yes"}, faults: []string{`"yes" is neither true nor false`}},
		"Reloader: typed auto":                                   {annotations: notes{reloadtest.SecretAuto: "true"}, want: secretAlone, by: spec.Reloader},
		"Reloader: typed auto of the other kind":                 {annotations: notes{"configmap.reloader.stakater.com/auto": "true"}, want: configMapAlone, by: spec.Reloader},
		"Reloader: auto on the pod template":                     {template: notes{auto: "true"}, want: both, by: spec.Reloader},
		"Reloader: the workload's own auto hides the template's": {annotations: notes{auto: "false"}, template: notes{auto: "true"}},
		"Reloader: a key for one kind hides the template's for that kind alone": {
			annotations: notes{reloadtest.SecretAuto: "false"}, template: notes{auto: "true"},
			want: configMapAlone, by: spec.Reloader,
		},
		"Reloader: an exclusion hides no template":              {annotations: notes{reloadtest.SecretExcludes: "s"}, template: notes{auto: "true"}, want: configMapAlone, by: spec.Reloader},
		"Reloader: exclusions on the pod template are not read": {template: notes{auto: "true", reloadtest.SecretExcludes: "s"}, want: both, by: spec.Reloader},
		"Reloader: names cover what is listed, consumed or not": {annotations: notes{reloadtest.SecretNames: " unused , s"}, want: []string{consumedSecret, "Secret/unused"}, by: spec.Reloader},
		"Reloader: names are of their kind":                     {annotations: notes{reloadtest.ConfigMapNames: "s,c"}, want: configMapAlone, by: spec.Reloader},
		"Reloader: names on the pod template":                   {template: notes{reloadtest.SecretNames: "unused"}, want: unused, by: spec.Reloader},
		"Reloader: a pattern is anchored":                       {annotations: notes{reloadtest.SecretNames: "un.*,.*x"}, want: unused, by: spec.Reloader},
		"Reloader: a pattern must match the whole name":         {annotations: notes{reloadtest.SecretNames: "nuse."}},
		"Reloader: one bad pattern leaves the others": {
			annotations: notes{reloadtest.SecretNames: "(,unused"}, want: unused, by: spec.Reloader,
			faults: []string{`"(" is neither a name nor a regular expression`},
		},
		"Reloader: a pattern without end":     {annotations: notes{reloadtest.SecretNames: strings.Repeat("x*", 600)}, faults: []string{"is longer than 512 characters"}},
		"Reloader: a pattern that takes long": {annotations: notes{reloadtest.SecretNames: "x{900}y{900}z{900}"}, faults: []string{"is too costly to match"}},
		"Reloader: patterns that take long together": {
			annotations: notes{reloadtest.SecretNames: "x{900},y{900},z{900},unuse."}, want: unused, by: spec.Reloader,
			faults: []string{`"z{900}" is too costly to match, with those before it`},
		},
		"Reloader: too many": {
			annotations: notes{reloadtest.SecretNames: strings.Repeat("other,", mark.MaxListed-1) + "s,unused"}, want: secretAlone, by: spec.Reloader,
			faults: []string{"it lists 101 objects, of which only the first 100 count"},
		},
		"Wave: too many": {
			annotations: notes{wave: "true", "wave.pusher.com/extra-secrets": strings.Repeat("s,", mark.MaxListed) + "unused"},
			want:        both, by: spec.Wave,
			faults: []string{"it lists 101 objects, of which only the first 100 count"},
		},
		"Reloader: an empty list":                      {annotations: notes{reloadtest.SecretNames: " , "}},
		"Reloader: excluded, although listed":          {annotations: notes{reloadtest.SecretNames: "s,unused", reloadtest.SecretExcludes: "other, s"}, want: unused, by: spec.Reloader},
		"Reloader: an exclusion is a name, no pattern": {annotations: notes{reloadtest.SecretAuto: "true", reloadtest.SecretExcludes: ".*"}, want: secretAlone, by: spec.Reloader},
		"Reloader: ignored, although listed":           {annotations: notes{reloadtest.SecretNames: "s", auto: "true"}, tags: mark.Tags{Ignore: true}},
		"Reloader: search without a match":             {annotations: notes{"reloader.stakater.com/search": "true"}},
		"Reloader: search with a match":                {annotations: notes{"reloader.stakater.com/search": "true"}, tags: mark.Tags{Match: true}, want: both, by: spec.Reloader},
		"Reloader: search is nothing but true":         {annotations: notes{"reloader.stakater.com/search": "1"}, tags: mark.Tags{Match: true}},
		"Reloader: a match without a search":           {tags: mark.Tags{Match: true}},
		"Reloader: what a CSI driver mounts": {
			annotations: notes{"secretproviderclass.reloader.stakater.com/reload": "x", "secretproviderclass.reloader.stakater.com/auto": "true"},
			faults:      []string{"Headwater does not see", "Headwater does not see"},
		},
		"Reloader: what a CSI driver mounts, on the pod template": {
			template: notes{"secretproviderclass.reloader.stakater.com/reload": "x", "secretproviderclass.reloader.stakater.com/auto": "true"},
			faults:   []string{"Headwater does not see", "Headwater does not see"},
		},
		"Reloader: what a CSI driver mounts, on the pod template of a workload that says otherwise": {
			annotations: notes{auto: "false"},
			template:    notes{"secretproviderclass.reloader.stakater.com/auto": "true"},
		},
		"Reloader: how to roll Argo's Rollouts out": {annotations: notes{"reloader.stakater.com/rollout-strategy": "restart"}},
		"Wave: covers what is consumed":             {annotations: notes{wave: "true"}, want: both, by: spec.Wave},
		"Wave: nothing but true":                    {annotations: notes{wave: "1", "wave.pusher.com/extra-secrets": "unused"}},
		"Wave: extras":                              {annotations: notes{wave: "true", "wave.pusher.com/extra-secrets": "unused, ns/s"}, want: []string{consumedSecret, consumedConfigMap, "Secret/unused"}, by: spec.Wave},
		"Wave: extras of another namespace are refused": {
			annotations: notes{wave: "true", "wave.pusher.com/extra-configmaps": "other/c,A"},
			want:        both, by: spec.Wave,
			faults: []string{`"other/c" is in another namespace`, `"A" is not NAME`},
		},
		"Wave: the pod template is not read":       {template: notes{wave: "true"}},
		"Wave does not know what Reloader ignores": {annotations: notes{wave: "true"}, tags: mark.Tags{Ignore: true}, want: both, by: spec.Wave},
		"both: either is enough": {
			annotations: notes{wave: "true", "wave.pusher.com/extra-secrets": "unused", reloadtest.SecretNames: "gone", reloadtest.SecretExcludes: "s"},
			want:        []string{consumedSecret, consumedConfigMap, "Secret/unused"}, by: spec.Wave,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			meta, theirs := reloadtest.Saying(test.annotations, test.template)
			of, faults := optin.ReadPreferences(meta, theirs, reloadtest.BothTools())
			require.ElementsMatch(t, test.want, coveredBy(of, test.tags, test.by))
			require.Len(t, faults, len(test.faults))
			for i, problem := range test.faults {
				require.Contains(t, faults[i].Problem, problem)
			}
			require.Nil(t, of.Keys())
			require.Empty(t, of.How)

			of, faults = optin.ReadPreferences(meta, theirs, spec.Settings{OptIn: new(true)})
			require.Empty(t, of.Asks, "without compatibility nobody listens")
			require.Empty(t, of.Named)
			require.Empty(t, faults)
		})
	}
}

// coveredBy are the objects about which of asks, if all of them ask by.
func coveredBy(of optin.Preferences, tags mark.Tags, by spec.Tool) (covered []string) {
	for _, name := range []string{"Secret/s", "ConfigMap/c", "Secret/unused"} {
		kind, name, _ := strings.Cut(name, "/")
		ref := object.Ref{Kind: object.Kind(kind), Namespace: "ns", Name: name}
		var references []refs.Reference
		if name != "unused" {
			references = []refs.Reference{{Kind: ref.Kind, Name: name, Mode: refs.EnvFrom}}
		}
		for _, r := range of.ReferencesTo(ref, references) {
			if asked := of.OptInFor(r, ref, tags, false); asked != nil && asked.Tool() == by && asked.Action() == spec.Restart {
				covered = append(covered, kind+"/"+name)
				break
			}
		}
	}
	return covered
}

func TestWhoSaysSomethingToHeadwaterSaysNothingToOtherTools(t *testing.T) {
	theirs := reloadtest.Notes{
		"reloader.stakater.com/auto": "true", reloadtest.SecretNames: "unused", "wave.pusher.com/update-on-config-change": "true",
		"deployment.reloader.stakater.com/pause-period": "5m",
	}
	ref := object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	tests := map[string]struct {
		ours reloadtest.Notes
		// by is the tool that asks about Secret/ns/s; theirs is true if the other
		// annotations of that tool count too.
		by     spec.Tool
		theirs bool
	}{
		"nothing":                   {by: spec.Reloader, theirs: true},
		"how to reload":             {ours: reloadtest.Notes{mark.Reload: "Refresh"}, by: spec.Headwater},
		"for what to reload":        {ours: reloadtest.Notes{mark.ReloadOn: "Secret/s"}, by: spec.Headwater},
		"for something else":        {ours: reloadtest.Notes{mark.ReloadOn: "Secret/other"}},
		"not to reload":             {ours: reloadtest.Notes{mark.Reload: "Off"}},
		"which keys count, alone":   {ours: reloadtest.Notes{mark.ReloadKeys: "k"}, by: spec.Reloader, theirs: true},
		"something that is garbled": {ours: reloadtest.Notes{mark.Reload: "always"}, by: spec.Reloader, theirs: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			of, _ := optin.ReadPreferences(together(theirs, test.ours))
			asked := of.OptInFor(refs.Reference{Kind: object.Secret, Name: "s", Mode: refs.EnvFrom}, ref, mark.Tags{}, false)
			if test.by == "" {
				require.Nil(t, asked)
			} else {
				require.Equal(t, test.by, asked.Tool())
			}
			require.Equal(t, test.theirs, len(of.Named) > 0)
			require.Equal(t, test.theirs, of.Debounce == 5*time.Minute)
		})
	}
}

func together(all ...reloadtest.Notes) (*metav1.ObjectMeta, *optin.ThirdParty, spec.Settings) {
	annotations := reloadtest.Notes{}
	for _, some := range all {
		for key, value := range some {
			annotations[key] = value
		}
	}
	meta, theirs := reloadtest.Saying(annotations, nil)
	return meta, theirs, reloadtest.BothTools()
}

func TestToolsThatNobodyHonoursAreNamed(t *testing.T) {
	_, theirs := reloadtest.Saying(reloadtest.Notes{"wave.pusher.com/update-on-config-change": "true"}, reloadtest.Notes{"reloader.stakater.com/auto": "true"})
	require.Equal(t, []spec.Tool{spec.Reloader, spec.Wave}, theirs.DisabledTools(spec.Settings{}))
	require.Equal(t, []spec.Tool{spec.Reloader}, theirs.DisabledTools(spec.Settings{Compatibility: []spec.Tool{spec.Wave}}))
	require.Empty(t, theirs.DisabledTools(reloadtest.BothTools()))
	_, nothing := reloadtest.Saying(nil, nil)
	require.Empty(t, nothing.DisabledTools(spec.Settings{}))
}

func TestNobodyOptsInWhereTheFileSaysSo(t *testing.T) {
	meta, theirs := reloadtest.Saying(reloadtest.Notes{mark.Reload: "Restart", mark.ReloadOn: "Secret/s"}, nil)
	of, faults := optin.ReadPreferences(meta, theirs, spec.Settings{OptIn: new(false)})
	require.Empty(t, faults)
	require.Empty(t, of.Asks)
	require.Equal(t, spec.Restart, of.How, "a rule's action is theirs to override all the same")
}

func TestPausePeriodIsTheLeastTimeBetweenRestartsOfADeployment(t *testing.T) {
	tests := map[string]struct {
		kind  kinds.Kind
		value string
		want  time.Duration
		fault string
	}{
		"a time":                      {kinds.KindDeployment, "5m", 5 * time.Minute, ""},
		"zero":                        {kinds.KindDeployment, "0s", 0, "is not a time above zero"},
		"below zero":                  {kinds.KindDeployment, "-1s", 0, "is not a time above zero"},
		"a number":                    {kinds.KindDeployment, "5", 0, "is not a time above zero"},
		"other kinds are not delayed": {kinds.KindStatefulSet, "5m", 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			annotations := reloadtest.Notes{mark.ReloaderPausePeriod: test.value}
			theirs := optin.ReadThirdParty(test.kind, "ns", annotations, nil)
			of, faults := optin.ReadPreferences(&metav1.ObjectMeta{Annotations: annotations}, theirs, reloadtest.BothTools())
			require.Equal(t, test.want, of.Debounce)
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

func faultError(faults []optin.Fault) error { return problem(faults[0].Problem) }

func FuzzForeignAnnotations(f *testing.F) {
	f.Add("a,b.*,(", "true", "ns/x,y", "5m")
	f.Add(",, ,", "T", "other/x", "-1s")
	f.Fuzz(func(t *testing.T, names, truth, extras, pause string) {
		annotations := reloadtest.Notes{
			reloadtest.SecretNames: names, reloadtest.ConfigMapNames: names, reloadtest.SecretExcludes: names, mark.ReloaderAuto: truth, mark.WaveUpdate: "true",
			mark.WaveExtraSecrets: extras, mark.WaveExtraConfigMaps: names, mark.ReloaderPausePeriod: pause,
		}
		of, faults := optin.ReadPreferences(together(annotations))
		require.GreaterOrEqual(t, of.Debounce, time.Duration(0))
		for _, ref := range of.Named {
			require.Equal(t, "ns", ref.Namespace, "never an object of another namespace")
			_, err := object.ParseRef(ref.String())
			require.NoError(t, err)
		}
		for _, fault := range faults {
			require.Less(t, len("The annotation  is ignored in part: ")+len(fault.Annotation)+len(fault.Problem), 1024, "the API server takes no longer note")
		}
	})
}

func TestARestartOfARolloutByReloadersStrategyIsRefused(t *testing.T) {
	for kind, want := range map[kinds.Kind]int{kinds.KindRollout: 1, kinds.KindDeployment: 0} {
		annotations := reloadtest.Notes{mark.ReloaderAuto: "true", mark.ReloaderStrategy: "restart"}
		settings := spec.Settings{Compatibility: []spec.Tool{spec.Reloader}, OptIn: new(true)}
		_, faults := optin.ReadPreferences(&metav1.ObjectMeta{}, optin.ReadThirdParty(kind, "ns", annotations, nil), settings)
		require.Len(t, faults, want)
		for _, fault := range faults {
			require.True(t, fault.InPart)
			require.Contains(t, fault.Problem, "never sets spec.restartAt")
		}
	}
}
