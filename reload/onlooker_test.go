package reload

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type shown []Reloaded

func (s *shown) Reloaded(reloaded Reloaded) { *s = append(*s, reloaded) }

func TestWhoLooksOnIsToldWhatAChangeBroughtAbout(t *testing.T) {
	k := key{kind: KindPod, namespace: "team-a", name: "web"}
	var onlooker shown
	c := &Reporter{onlooker: &onlooker}
	for _, step := range []Step{StepNothing, StepAdopt, StepRestart, StepRefresh, StepConfirm, StepHold} {
		c.show(k, Decision{Step: step, Rule: "blog", Changed: []string{"Secret/team-a/blog"}})
	}
	require.Equal(t, shown{
		{Step: StepRestart, Consumer: "Pod/team-a/web", Rule: "blog", Changed: []string{"Secret/team-a/blog"}},
		{Step: StepRefresh, Consumer: "Pod/team-a/web", Rule: "blog", Changed: []string{"Secret/team-a/blog"}},
	}, onlooker)
	(&Reporter{}).show(k, Decision{Step: StepRestart}) // nobody looks
}
