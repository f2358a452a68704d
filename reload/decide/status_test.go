package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestStandingOfAWorkload(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	v1, v2 := reloadtest.Data{"a": "1"}, reloadtest.Data{"a": "2"}
	env := secret(h, "s", refs.Env, v1, "a")
	recorded := judged(h, testUID, "", []decide.Input{env}).Baseline
	byOther := judged(reloadtest.Hasher(t, 2), testUID, "", []decide.Input{env}).Baseline
	tests := map[string]struct {
		stored string
		now    decide.Input
		want   decide.Status
	}{
		"the data on record":                  {recorded, env, decide.Current},
		"other data":                          {recorded, secret(h, "s", refs.Env, v2, "a"), decide.Behind},
		"nothing on record":                   {"", env, decide.FirstSight},
		"a record that is damaged":            {"v9:", env, decide.FirstSight},
		"a record under another key":          {byOther, env, decide.Unknown},
		"a reference that is not on record":   {recorded, secret(h, "t", refs.Env, v1, "a"), decide.FirstSight},
		"an object that is gone":              {recorded, missing(env), decide.Missing},
		"an object that is gone, of nobody":   {"", ungoverned(missing(env)), decide.Missing},
		"a key that is gone":                  {recorded, requiring(secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a"), "a"), decide.Missing},
		"an object that was not read":         {recorded, unread(env), decide.Unknown},
		"what nobody governs":                 {recorded, ungoverned(env), decide.Untracked},
		"what is switched off":                {recorded, under(env, spec.None), decide.Untracked},
		"a volume, which its pods answer for": {recorded, secret(h, "s", refs.Volume, v1), decide.Untracked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, decide.StatusOf(h, testUID, test.stored, test.now))
		})
	}
}

func TestStandingOfAPod(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	v1, v2 := reloadtest.Data{"a": "1"}, reloadtest.Data{"a": "2"}
	now := reloadtest.Birth.Add(time.Hour)
	volume := secret(h, "s", refs.Volume, v1)
	pod := reloadtest.Pod(func(*workload.Pod) {})
	recorded := decide.Pod(h, pod, "", []decide.Input{changedAt(volume, now)}, now).Baseline
	require.NotEmpty(t, recorded)
	tests := map[string]struct {
		pod    *workload.Pod
		stored string
		now    decide.Input
		want   decide.Status
	}{
		"the data on record":                     {pod, recorded, volume, decide.Current},
		"other data":                             {pod, recorded, secret(h, "s", refs.Volume, v2), decide.Behind},
		"no record of an old change":             {pod, "", changedAt(volume, reloadtest.Birth.Add(time.Minute)), decide.Current},
		"no record of a change just now":         {pod, "", changedAt(volume, now), decide.Behind},
		"an object that is gone":                 {pod, recorded, missing(volume), decide.Missing},
		"an object that was not read":            {pod, recorded, unread(volume), decide.Unknown},
		"what is read at the start":              {pod, recorded, secret(h, "s", refs.Env, v1), decide.Untracked},
		"a pod without volumes on a node, (yet)": {reloadtest.Pod(func(p *workload.Pod) { p.Bound = false }), recorded, volume, decide.Untracked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, decide.PodStatusOf(h, test.pod, test.stored, test.now, now))
		})
	}
}
