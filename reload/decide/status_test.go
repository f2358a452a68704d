package decide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestStandingOfAWorkload(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	v1, v2 := reloadtest.Data{"a": "1"}, reloadtest.Data{"a": "2"}
	env := secret(h, "s", refs.Env, v1, "a")
	recorded := Workload(h, testUID, "", []Input{env}).Baseline
	byOther := Workload(reloadtest.Hasher(t, 2), testUID, "", []Input{env}).Baseline
	tests := map[string]struct {
		stored string
		now    Input
		want   Status
	}{
		"the data on record":                  {recorded, env, Current},
		"other data":                          {recorded, secret(h, "s", refs.Env, v2, "a"), Behind},
		"nothing on record":                   {"", env, FirstSight},
		"a record that is damaged":            {"v9:", env, FirstSight},
		"a record under another key":          {byOther, env, Unknown},
		"a reference that is not on record":   {recorded, secret(h, "t", refs.Env, v1, "a"), FirstSight},
		"an object that is gone":              {recorded, env.missing(), Missing},
		"an object that is gone, of nobody":   {"", env.missing().ungoverned(), Missing},
		"a key that is gone":                  {recorded, secret(h, "s", refs.Env, reloadtest.Data{"b": "1"}, "a").requiring("a"), Missing},
		"an object that was not read":         {recorded, env.unread(), Unknown},
		"what nobody governs":                 {recorded, env.ungoverned(), Untracked},
		"what is switched off":                {recorded, env.under(spec.None), Untracked},
		"a volume, which its pods answer for": {recorded, secret(h, "s", refs.Volume, v1), Untracked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, StatusOf(h, testUID, test.stored, test.now))
		})
	}
}

func TestStandingOfAPod(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	v1, v2 := reloadtest.Data{"a": "1"}, reloadtest.Data{"a": "2"}
	now := reloadtest.Birth.Add(time.Hour)
	volume := secret(h, "s", refs.Volume, v1)
	pod := testPod(func(*workload.Pod) {})
	recorded := Pod(h, pod, "", []Input{volume.changedAt(now)}, now).Baseline
	require.NotEmpty(t, recorded)
	tests := map[string]struct {
		pod    *workload.Pod
		stored string
		now    Input
		want   Status
	}{
		"the data on record":                     {pod, recorded, volume, Current},
		"other data":                             {pod, recorded, secret(h, "s", refs.Volume, v2), Behind},
		"no record of an old change":             {pod, "", volume.changedAt(reloadtest.Birth.Add(time.Minute)), Current},
		"no record of a change just now":         {pod, "", volume.changedAt(now), Behind},
		"an object that is gone":                 {pod, recorded, volume.missing(), Missing},
		"an object that was not read":            {pod, recorded, volume.unread(), Unknown},
		"what is read at the start":              {pod, recorded, secret(h, "s", refs.Env, v1), Untracked},
		"a pod without volumes on a node, (yet)": {testPod(func(p *workload.Pod) { p.Bound = false }), recorded, volume, Untracked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, PodStatusOf(h, test.pod, test.stored, test.now, now))
		})
	}
}
