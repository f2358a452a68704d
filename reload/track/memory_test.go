package track

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestEchoStandsInForTheCacheUntilItCatchesUp(t *testing.T) {
	k := kinds.Key{Kind: kinds.KindDeployment, Namespace: "ns", Name: "w"}
	cached := func(uid types.UID, version, value string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{UID: uid, ResourceVersion: version, Annotations: map[string]string{mark.Baseline: value, mark.Reload: "Off"}}
	}
	tests := map[string]struct {
		cached *metav1.ObjectMeta
		want   string
		waits  bool
	}{
		"a cache that is behind":          {cached("u", "9", "before"), "written", true},
		"a cache that shows the write":    {cached("u", "10", "written"), "written", false},
		"a cache that shows a later edit": {cached("u", "11", "edited"), "edited", false},
		"another object of the name":      {cached("v", "9", "another"), "another", false},
		"a version that is no number":     {cached("u", "", "before"), "before", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var e Written
			e.Expect(k, "u", "10", map[string]*string{mark.Baseline: new("written"), mark.RestartedAt: nil})
			require.Equal(t, test.want, e.Read(k, test.cached, mark.Baseline))
			require.Empty(t, e.Read(k, test.cached, mark.RestartedAt))
			require.Equal(t, "Off", e.Read(k, test.cached, mark.Reload), "what was not written is as cached")
			require.Equal(t, test.waits, e.Waiting(k, test.cached))
			e.Forget(k)
			require.Equal(t, test.cached.Annotations[mark.Baseline], e.Read(k, test.cached, mark.Baseline))
		})
	}
}

func TestAChangePutsOffThoseThatWaitButNotForEver(t *testing.T) {
	var p Pending
	k := kinds.Key{Kind: kinds.KindDeployment, Namespace: "ns", Name: "w"}
	require.Zero(t, p.Debounce(k, birth))
	_, found := p.Done(k)
	require.False(t, found)

	p.Add(k, birth, birth, time.Second)
	p.Add(k, birth, birth.Add(900*time.Millisecond), time.Second)
	require.Equal(t, time.Second, p.Debounce(k, birth.Add(900*time.Millisecond)), "put off")
	require.Zero(t, p.Debounce(k, birth.Add(2*time.Second)))
	p.Add(k, birth, birth.Add(time.Second), 0)
	require.Equal(t, 900*time.Millisecond, p.Debounce(k, birth.Add(time.Second)), "one that has time hurries nobody")
	for i := range 100 {
		p.Add(k, birth, birth.Add(time.Duration(i)*100*time.Millisecond), time.Second)
	}
	require.Equal(t, spec.MaxDebounce, p.Debounce(k, birth), "not for ever")

	made, found := p.Done(k)
	require.True(t, found)
	require.Equal(t, birth, made)
	require.Zero(t, p.Debounce(k, birth))
}

func TestChangesWhileARestartWaitsAreDebouncedAnew(t *testing.T) {
	var p Pending
	k := kinds.Key{Kind: kinds.KindDeployment, Namespace: "ns", Name: "w"}
	p.Postponed(k)
	_, found := p.Done(k)
	require.False(t, found, "nothing has changed")

	p.Add(k, birth, birth, time.Second)
	p.Postponed(k)
	later := birth.Add(time.Minute)
	for i := range 100 {
		p.Add(k, later, later.Add(time.Duration(i)*100*time.Millisecond), time.Second)
	}
	require.Equal(t, spec.MaxDebounce, p.Debounce(k, later), "put off, but not for ever")
	made, _ := p.Done(k)
	require.Equal(t, birth, made, "what waits has waited since the first")

	p.Add(k, later, later, time.Second)
	p.Add(k, birth, later, time.Second)
	made, _ = p.Done(k)
	require.Equal(t, birth, made, "the first is the one that was made first, not seen first")
}

func TestATemplateIsRememberedWhileAChangeWaits(t *testing.T) {
	var p Pending
	k := kinds.Key{Kind: kinds.KindDeployment, Namespace: "ns", Name: "w"}
	p.Rewritten(k, "10")
	require.Empty(t, p.Template(k), "nothing waits")
	p.Add(k, birth, birth, time.Second)
	require.Empty(t, p.Template(k), "it was written before the change was seen")
	p.Rewritten(k, "11")
	p.Add(k, birth, birth.Add(time.Minute), time.Second)
	p.Rewritten(k, "12")
	require.Equal(t, "12", p.Template(k))
	p.Done(k)
	require.Empty(t, p.Template(k))
}
