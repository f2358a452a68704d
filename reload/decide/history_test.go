package decide_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/test/seed"
)

// However objects, references and wishes change, and whenever Headwater looks:
// once nothing is held any more, each container has read what is there now, and
// nothing was restarted that had. An oracle that knows what each container read
// holds the decisions against it.
func TestNoHistoryLosesARestartOrMakesOneTooMany(t *testing.T) {
	restarts, first := 0, seed.Or(t, 0)
	for i := range uint64(3000) {
		h := newHistory(t, first+i)
		for range 60 {
			h.happen()
			if h.dice.IntN(3) > 0 {
				h.look()
			}
		}
		restarts += h.restarts
	}
	require.Greater(t, restarts, 3000, "too little happened")
}

// look has Headwater decide until nothing is left to do, or to be done now.
func (h *history) look() {
	busy := h.dice.IntN(5) == 0
	for turn, more := 0, true; more; turn++ {
		h.Less(turn, 4, "goes on for ever: %v", h.told)
		h.learn()
		d := judged(h.hasher, testUID, h.stored, h.consumed())
		h.tell("%d: %s %s %v, busy %t", h.clock, d.Step, d.Reason, d.Changed, busy)
		switch d.Step {
		case spec.StepAdopt:
			h.stored = d.Baseline
		case spec.StepRestart:
			more = h.restart(d, busy)
		case spec.StepHold:
			h.Equal(d.Reason == spec.ReasonEmptied, h.startable(), "holds what could start: %v", h.told)
			if d.Reason == spec.ReasonEmptied {
				h.True(h.readNothing(d.Emptied), "holds what would read a value: %v", h.told)
				h.stored = d.BaselineWhileWaiting
			}
			return
		default:
			h.settled()
			return
		}
	}
}

// restart reports whether d was carried out; it is put off while busy.
func (h *history) restart(d decide.Decision, busy bool) bool {
	h.True(h.startable(), "restarts what cannot start: %v", h.told)
	if h.delivered(d) {
		h.stored = delivered(d).Baseline
		return true
	}
	h.False(h.readNothing(d.Changed), "restarts into nothing: %v", h.told)
	h.True(slices.ContainsFunc(h.uses, func(u *use) bool {
		return h.restarted(u) && (h.behind(u) || u.recorded != nil && !maps.Equal(*u.recorded, h.reads(u)))
	}), "restarts for nothing: %v", h.told)
	if busy {
		h.stored = d.BaselineWhileWaiting
		return false
	}
	h.restarts++
	h.stored = d.Baseline
	h.roll()
	return true
}

// settled holds that nothing is behind. That pods read something else for a while,
// between two looks, nobody can tell afterwards.
func (h *history) settled() {
	for _, u := range h.uses {
		if !u.sighted || h.objects[u.of].data == nil || !h.startable() || !h.restarted(u) {
			continue
		}
		again := u.recorded != nil && maps.Equal(*u.recorded, h.reads(u))
		h.True(again || !h.behind(u), "lost, of %s: %v", u.Object, h.told)
		u.read, u.recorded = h.reads(u), nil
	}
}

// delivered reports whether the pods started after what changed was written.
func (h *history) delivered(d decide.Decision) bool {
	return !slices.ContainsFunc(h.uses, func(u *use) bool {
		return slices.Contains(d.Changed, u.Object.String()) && h.objects[u.of].writtenAt > h.startedAt
	})
}

// restarted reports whether a change of u is one that calls for a restart, by the
// documentation.
func (h *history) restarted(u *use) bool {
	switch {
	case u.Rule == "" || u.Action == spec.None || u.Action == spec.Refresh:
		return false
	case u.Action == spec.Restart || u.Mode != refs.Volume:
		return true
	default:
		return u.kept || h.objects[u.of].data != nil && h.objects[u.of].immutable
	}
}

// learn notes what Headwater can know from now on. The first sight of something is
// taken for what the containers read.
func (h *history) learn() {
	for place, of := range h.places {
		uses := slices.DeleteFunc(slices.Clone(h.uses), func(u *use) bool { return u.knowledge != of })
		if h.startable() && slices.ContainsFunc(uses, h.lacked) {
			of.recorded = nil // what they read now is nothing
		}
		seen := func(u *use) bool { return h.restarted(u) && h.seen(u) }
		switch {
		case len(uses) == 0:
			delete(h.places, place)
			continue
		case slices.ContainsFunc(uses, seen):
			h.learnOf(uses[0])
		case !slices.ContainsFunc(uses, func(u *use) bool { return !h.refreshed(u) }):
			of.sighted = false
		}
		o := h.objects[uses[0].of]
		of.kept = of.kept || of.sighted && o.data != nil && o.immutable && slices.ContainsFunc(uses, h.restarted)
	}
}

func (h *history) learnOf(u *use) {
	switch {
	case u.sighted:
	case h.started:
		u.read, u.recorded = h.reads(u), nil
	default:
		u.recorded = new(h.reads(u))
	}
	u.sighted = true
}

// seen reports whether Headwater can tell what pods that start now have of u.
func (h *history) seen(u *use) bool {
	content := h.objects[u.of].data
	if content == nil {
		return u.Optional && h.started && h.startable()
	}
	return !slices.ContainsFunc(u.Required, func(key string) bool { _, found := content[key]; return !found })
}

// refreshed reports whether the files of u are, and nothing is on record.
func (h *history) refreshed(u *use) bool {
	o := h.objects[u.of]
	return u.Rule != "" && u.Action != spec.None && u.Mode == refs.Volume && !h.restarted(u) && o.data != nil && h.seen(u) && !o.immutable && !u.kept
}
