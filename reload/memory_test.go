package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
)

func TestEchoStandsInForTheCacheUntilItCatchesUp(t *testing.T) {
	k := key{KindDeployment, "ns", "w"}
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
			var e writes
			e.expect(k, "u", "10", map[string]*string{mark.Baseline: new("written"), mark.RestartedAt: nil})
			require.Equal(t, test.want, e.read(k, test.cached, mark.Baseline))
			require.Empty(t, e.read(k, test.cached, mark.RestartedAt))
			require.Equal(t, "Off", e.read(k, test.cached, mark.Reload), "what was not written is as cached")
			require.Equal(t, test.waits, e.waiting(k, test.cached))
			e.forget(k)
			require.Equal(t, test.cached.Annotations[mark.Baseline], e.read(k, test.cached, mark.Baseline))
		})
	}
}

func TestAChangePutsOffThoseThatWaitButNotForEver(t *testing.T) {
	var p pending
	k := key{KindDeployment, "ns", "w"}
	require.Zero(t, p.debounce(k, birth))
	_, found := p.done(k)
	require.False(t, found)

	p.add(k, birth, birth, time.Second)
	p.add(k, birth, birth.Add(900*time.Millisecond), time.Second)
	require.Equal(t, time.Second, p.debounce(k, birth.Add(900*time.Millisecond)), "put off")
	require.Zero(t, p.debounce(k, birth.Add(2*time.Second)))
	p.add(k, birth, birth.Add(time.Second), 0)
	require.Equal(t, 900*time.Millisecond, p.debounce(k, birth.Add(time.Second)), "one that has time hurries nobody")
	for i := range 100 {
		p.add(k, birth, birth.Add(time.Duration(i)*100*time.Millisecond), time.Second)
	}
	require.Equal(t, maxDebounce, p.debounce(k, birth), "not for ever")

	made, found := p.done(k)
	require.True(t, found)
	require.Equal(t, birth, made)
	require.Zero(t, p.debounce(k, birth))
}

func TestChangesWhileARestartWaitsAreDebouncedAnew(t *testing.T) {
	var p pending
	k := key{KindDeployment, "ns", "w"}
	p.postponed(k)
	_, found := p.done(k)
	require.False(t, found, "nothing has changed")

	p.add(k, birth, birth, time.Second)
	p.postponed(k)
	later := birth.Add(time.Minute)
	for i := range 100 {
		p.add(k, later, later.Add(time.Duration(i)*100*time.Millisecond), time.Second)
	}
	require.Equal(t, maxDebounce, p.debounce(k, later), "put off, but not for ever")
	made, _ := p.done(k)
	require.Equal(t, birth, made, "what waits has waited since the first")

	p.add(k, later, later, time.Second)
	p.add(k, birth, later, time.Second)
	made, _ = p.done(k)
	require.Equal(t, birth, made, "the first is the one that was made first, not seen first")
}

func TestATemplateIsRememberedWhileAChangeWaits(t *testing.T) {
	var p pending
	k := key{KindDeployment, "ns", "w"}
	p.rewritten(k, "10")
	require.Empty(t, p.template(k), "nothing waits")
	p.add(k, birth, birth, time.Second)
	require.Empty(t, p.template(k), "it was written before the change was seen")
	p.rewritten(k, "11")
	p.add(k, birth, birth.Add(time.Minute), time.Second)
	p.rewritten(k, "12")
	require.Equal(t, "12", p.template(k))
	p.done(k)
	require.Empty(t, p.template(k))
}
