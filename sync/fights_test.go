package sync

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestRepairsOfOneCloneSlowDown(t *testing.T) {
	f, target, other := newFights(), places(0, 1)[0], places(1, 2)[0]
	now := time.Unix(1000, 0)
	for range quickRepairs {
		require.Zero(t, f.wait(target, now), "the first are made at once")
		f.repaired(target, now)
		now = now.Add(10 * time.Millisecond)
	}
	var pauses []time.Duration
	for range 11 {
		pause := f.wait(target, now)
		require.True(t, f.on(target, now))
		require.Zero(t, f.wait(other, now), "one clone delays no other")
		now = now.Add(pause)
		require.Zero(t, f.wait(target, now))
		f.repaired(target, now)
		pauses = append(pauses, f.wait(target, now))
	}
	require.Equal(t, []time.Duration{2 * firstPause, 4 * firstPause, 8 * firstPause}, pauses[:3])
	require.Equal(t, longestPause, pauses[10])

	now = now.Add(2*longestPause + time.Second)
	require.False(t, f.on(target, now), "it was left alone for long enough")
	f.repaired(target, now)
	require.Zero(t, f.wait(target, now))
	f.prune(now)
	require.Len(t, f.by, 1)
	f.prune(now.Add(2 * fightWindow))
	require.Empty(t, f.by, "nothing is kept of clones that are left alone")
}

func TestFewRepairsNeverWait(t *testing.T) {
	for sentence, every := range map[string]time.Duration{"now and then": time.Minute, "each third of a minute": 20 * time.Second} {
		t.Run(sentence, func(t *testing.T) {
			f, now := newFights(), time.Unix(1000, 0)
			for range 100 {
				f.repaired(places(0, 1)[0], now)
				require.Zero(t, f.wait(places(0, 1)[0], now))
				now = now.Add(every)
			}
		})
	}
}

func TestAFightIsShownWhileARepairIsDue(t *testing.T) {
	f, now, target := newFights(), time.Unix(1000, 0), places(0, 1)[0]
	for range quickRepairs {
		f.repaired(target, now)
	}
	f.report(target, "rival")
	due := Finding{Target: target, Standing: Drifting, Step: Step{Action: Update, Reason: Outdated}}
	shown := f.mark(due, now)
	require.Equal(t, Fights, shown.Standing)
	require.Equal(t, Reason(Fighting), shown.Step.Reason)
	require.Equal(t, "rival", shown.Why())
	right := Finding{Target: target, Standing: Current, Step: Step{Action: Leave, Reason: InSync}}
	require.Equal(t, right, f.mark(right, now))
	require.Equal(t, due, f.mark(due, now.Add(time.Hour)), "it is over")
}

func TestALookIsRememberedForOneVersion(t *testing.T) {
	target := places(0, 1)[0]
	found := &object.Digested{}
	found.ResourceVersion = "7"
	refused := State{Target: target, Found: found, Taken: true, MadeByUs: true}
	l := looks{}
	l.note(refused, Step{Action: Refuse})
	require.Equal(t, found, l.at(target, "7"))
	require.Nil(t, l.at(target, "8"))
	require.Empty(t, l)
	l.note(refused, Step{Action: Refuse})
	l.note(State{Target: target}, Step{Action: Create})
	require.Empty(t, l, "it is gone")
	l.note(State{Target: target, Found: found, Taken: true}, Step{Action: Refuse})
	require.Empty(t, l, "a stranger's object is a conflict without a look")
}

func TestAMissingSourceIsNamedAsItWasWhenThePlaceWasLookedAt(t *testing.T) {
	rule := testRule(t, func(c *Config) { c.OnSourceDeleted = Delete })
	note := missingNote(rule, missingSource(rule.Source.Ref().String()))
	require.Equal(t, `rule "blog": its source Secret/platform/blogsecret does not exist; create it, or correct `+"`source`"+
		` in the configuration; onSourceDeleted is Delete, so existing clones are due for removal as long as it does not exist`, note)
}
