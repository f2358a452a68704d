package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestWhatAPodReadBeforeItChanged(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	content := reloadtest.Data{"a": "1", "b": "1"}
	written := reloadtest.Birth.Add(time.Minute)
	env := changedAt(secret(h, "s", refs.Env, content, "a"), written)
	at := func(bound time.Time) *workload.Pod {
		return reloadtest.Pod(func(p *workload.Pod) { p.BoundAt = bound })
	}
	tests := map[string]struct {
		pod     *workload.Pod
		reads   decide.Input
		changed []string
		want    bool
	}{
		"a variable of a key that changed":               {reads: env, changed: []string{"a", "b"}, want: true},
		"a variable of another key":                      {reads: env, changed: []string{"b"}},
		"all keys as variables":                          {reads: changedAt(secret(h, "s", refs.EnvFrom, content), written), changed: []string{"b"}, want: true},
		"an init container's volume":                     {reads: changedAt(secret(h, "s", refs.InitVolume, content), written), changed: []string{"b"}, want: true},
		"a volume, which is refreshed":                   {reads: changedAt(secret(h, "s", refs.Volume, content), written), changed: []string{"a"}},
		"a volume of what is immutable":                  {reads: frozen(changedAt(secret(h, "s", refs.Volume, content), written)), changed: []string{"a"}, want: true},
		"under Refresh nobody wants a restart":           {reads: under(env, spec.Refresh), changed: []string{"a"}},
		"what nobody governs":                            {reads: ungoverned(env), changed: []string{"a"}},
		"what does not exist any more":                   {reads: missing(env), changed: []string{"a"}},
		"a pod that started in the second of the change": {pod: at(written.Add(900 * time.Millisecond)), reads: env, changed: []string{"a"}, want: true},
		"a pod that started after the change":            {pod: at(written.Add(time.Second)), reads: env, changed: []string{"a"}},
		"a change without a time":                        {pod: at(written.Add(time.Second)), reads: changedAt(env, time.Time{}), changed: []string{"a"}, want: true},
		"a pod that has ended":                           {pod: reloadtest.Pod(func(p *workload.Pod) { p.Phase = corev1.PodSucceeded }), reads: env, changed: []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := test.pod
			if pod == nil {
				pod = at(reloadtest.Birth)
			}
			got := decide.UnreachedBy(pod, []decide.Input{test.reads}, decide.KeysOf{test.reads.Object: test.changed})
			require.Equal(t, test.want, len(got) == 1)
		})
	}
}
