package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/rules"
)

func TestStandingOfAWorkload(t *testing.T) {
	h := testHasher(t, 1)
	v1, v2 := data{"a": "1"}, data{"a": "2"}
	env := secret(h, "s", Env, v1, "a")
	recorded := decideWorkload(h, testUID, "", []Consumed{env}).Baseline
	byOther := decideWorkload(testHasher(t, 2), testUID, "", []Consumed{env}).Baseline
	tests := map[string]struct {
		stored string
		now    Consumed
		want   Standing
	}{
		"the data on record":                  {recorded, env, Current},
		"other data":                          {recorded, secret(h, "s", Env, v2, "a"), Behind},
		"nothing on record":                   {"", env, FirstSight},
		"a record that is damaged":            {"v9:", env, FirstSight},
		"a record under another key":          {byOther, env, Unknown},
		"a reference that is not on record":   {recorded, secret(h, "t", Env, v1, "a"), FirstSight},
		"an object that is gone":              {recorded, env.missing(), Missing},
		"an object that is gone, of nobody":   {"", env.missing().ungoverned(), Missing},
		"a key that is gone":                  {recorded, secret(h, "s", Env, data{"b": "1"}, "a").requiring("a"), Missing},
		"an object that was not read":         {recorded, env.unread(), Unknown},
		"what nobody governs":                 {recorded, env.ungoverned(), Untracked},
		"what is switched off":                {recorded, env.under(None), Untracked},
		"a volume, which its pods answer for": {recorded, secret(h, "s", Volume, v1), Untracked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, standing(h, testUID, test.stored, test.now))
		})
	}
}

func TestStandingOfAPod(t *testing.T) {
	h := testHasher(t, 1)
	v1, v2 := data{"a": "1"}, data{"a": "2"}
	now := birth.Add(time.Hour)
	volume := secret(h, "s", Volume, v1)
	pod := testPod(func(*Pod) {})
	recorded := decidePod(h, pod, "", []Consumed{volume.changedAt(now)}, now).Baseline
	require.NotEmpty(t, recorded)
	tests := map[string]struct {
		pod    *Pod
		stored string
		now    Consumed
		want   Standing
	}{
		"the data on record":                     {pod, recorded, volume, Current},
		"other data":                             {pod, recorded, secret(h, "s", Volume, v2), Behind},
		"no record of an old change":             {pod, "", volume.changedAt(birth.Add(time.Minute)), Current},
		"no record of a change just now":         {pod, "", volume.changedAt(now), Behind},
		"an object that is gone":                 {pod, recorded, volume.missing(), Missing},
		"an object that was not read":            {pod, recorded, volume.unread(), Unknown},
		"what is read at the start":              {pod, recorded, secret(h, "s", Env, v1), Untracked},
		"a pod without volumes on a node, (yet)": {testPod(func(p *Pod) { p.Bound = false }), recorded, volume, Untracked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, podStanding(h, test.pod, test.stored, test.now, now))
		})
	}
}

func TestKindsAsPeopleWriteThem(t *testing.T) {
	settings := Settings{Workloads: []WorkloadKind{{CustomKind: CustomKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}}}}
	rule, err := Compile(rules.Base{Name: "r"}, Config{Targets: []Target{
		{CustomKind: CustomKind{Group: "example.com", Version: "v1", Kind: "Box", Resource: "boxen"}, Annotate: true},
	}})
	require.NoError(t, err)
	set := rules.NewSet(rule)
	for text, want := range map[string]Kind{
		"Deployment": KindDeployment, "deployments": KindDeployment, "deploy": KindDeployment, "STS": KindStatefulSet,
		"ds": KindDaemonSet, "cronjob": KindCronJob, "cj": KindCronJob, "po": KindPod, "pods": KindPod,
		"rollout": KindRollout, "Rollouts.argoproj.io": KindRollout, "ro": KindRollout, "dc": KindDeploymentConfig,
		"cloneset": "CloneSet.apps.kruise.io", "CloneSet.apps.kruise.io": "CloneSet.apps.kruise.io", "boxen": "Box.example.com",
	} {
		got, err := ParseKind(text, settings, set)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = ParseKind("job", settings, set)
	require.ErrorContains(t, err, `kind "job" is none of [Deployment StatefulSet`)
}
