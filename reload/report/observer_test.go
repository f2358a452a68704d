package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

type shown []Reloaded

func (s *shown) Reloaded(reloaded Reloaded) { *s = append(*s, reloaded) }

func TestWhoLooksOnIsToldWhatAChangeBroughtAbout(t *testing.T) {
	k := kinds.Key{Kind: kinds.KindPod, Namespace: "team-a", Name: "web"}
	var seen shown
	c := &Reporter{observer: &seen}
	for _, step := range []spec.Step{spec.StepNothing, spec.StepAdopt, spec.StepRestart, spec.StepRefresh, spec.StepConfirm, spec.StepHold} {
		c.notifyObserver(k, decide.Decision{Step: step, Rule: "blog", Changed: []string{"Secret/team-a/blog"}})
	}
	require.Equal(t, shown{
		{Step: spec.StepRestart, Consumer: "Pod/team-a/web", Rule: "blog", Changed: []string{"Secret/team-a/blog"}},
		{Step: spec.StepRefresh, Consumer: "Pod/team-a/web", Rule: "blog", Changed: []string{"Secret/team-a/blog"}},
	}, seen)
	(&Reporter{}).notifyObserver(k, decide.Decision{Step: spec.StepRestart}) // nobody looks
}
