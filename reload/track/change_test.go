package track

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestAChangePutsOffThoseThatWaitButNotForEver(t *testing.T) {
	p := testMemory()
	k := kinds.Key{Kind: kinds.KindDeployment, Namespace: "ns", Name: "w"}
	require.Zero(t, p.debounce(k, reloadtest.Birth))
	_, found := p.TakeChange(k)
	require.False(t, found)

	p.AddChange(k, reloadtest.Birth, reloadtest.Birth, time.Second)
	p.AddChange(k, reloadtest.Birth, reloadtest.Birth.Add(900*time.Millisecond), time.Second)
	require.Equal(t, time.Second, p.debounce(k, reloadtest.Birth.Add(900*time.Millisecond)), "put off")
	require.Zero(t, p.debounce(k, reloadtest.Birth.Add(2*time.Second)))
	p.AddChange(k, reloadtest.Birth, reloadtest.Birth.Add(time.Second), 0)
	require.Equal(t, 900*time.Millisecond, p.debounce(k, reloadtest.Birth.Add(time.Second)), "one that has time hurries nobody")
	for i := range 100 {
		p.AddChange(k, reloadtest.Birth, reloadtest.Birth.Add(time.Duration(i)*100*time.Millisecond), time.Second)
	}
	require.Equal(t, spec.ShortDebounce, p.debounce(k, reloadtest.Birth), "not for ever")

	made, found := p.TakeChange(k)
	require.True(t, found)
	require.Equal(t, reloadtest.Birth, made)
	require.Zero(t, p.debounce(k, reloadtest.Birth))
}

func TestChangesWhileARestartWaitsAreDebouncedAnew(t *testing.T) {
	p := testMemory()
	k := kinds.Key{Kind: kinds.KindDeployment, Namespace: "ns", Name: "w"}
	p.update(k, (*consumer).endBurst)
	_, found := p.TakeChange(k)
	require.False(t, found, "nothing has changed")

	p.AddChange(k, reloadtest.Birth, reloadtest.Birth, time.Second)
	p.update(k, (*consumer).endBurst)
	later := reloadtest.Birth.Add(time.Minute)
	for i := range 100 {
		p.AddChange(k, later, later.Add(time.Duration(i)*100*time.Millisecond), time.Second)
	}
	require.Equal(t, spec.ShortDebounce, p.debounce(k, later), "put off, but not for ever")
	made, _ := p.TakeChange(k)
	require.Equal(t, reloadtest.Birth, made, "what waits has waited since the first")

	p.AddChange(k, later, later, time.Second)
	p.AddChange(k, reloadtest.Birth, later, time.Second)
	made, _ = p.TakeChange(k)
	require.Equal(t, reloadtest.Birth, made, "the first is the one that was made first, not seen first")
}

func TestATemplateIsRememberedWhileAChangeWaits(t *testing.T) {
	p := testMemory()
	k := kinds.Key{Kind: kinds.KindDeployment, Namespace: "ns", Name: "w"}
	p.SetTemplateVersion(k, "10")
	require.Empty(t, p.known(k).TemplateVersion, "nothing waits")
	p.AddChange(k, reloadtest.Birth, reloadtest.Birth, time.Second)
	require.Empty(t, p.known(k).TemplateVersion, "it was written before the change was seen")
	p.SetTemplateVersion(k, "11")
	p.AddChange(k, reloadtest.Birth, reloadtest.Birth.Add(time.Minute), time.Second)
	p.SetTemplateVersion(k, "12")
	require.Equal(t, "12", p.known(k).TemplateVersion)
	p.TakeChange(k)
	require.Empty(t, p.known(k).TemplateVersion)
}

func TestNothingIsLostWhileChangesKeepComing(t *testing.T) {
	p := testMemory()
	k := reloadtest.InNamespace("ns", "w")
	p.AddChange(k, reloadtest.Birth, reloadtest.Birth, time.Second)
	var changing sync.WaitGroup
	stop := make(chan struct{})
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				p.AddChange(k, reloadtest.Birth, reloadtest.Birth.Add(time.Duration(i)), time.Second)
			}
		}
	})
	defer changing.Wait()
	defer close(stop)
	for i := range 20000 {
		version := strconv.Itoa(i)
		p.SetTemplateVersion(k, version)
		require.Equal(t, version, p.known(k).TemplateVersion)
	}
}
