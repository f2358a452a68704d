package progress

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// The reasons of the Event and of the CloneStatus about a clone that is undone each time
// Headwater writes it: another client changes or deletes it, or admission, such as a
// mutating policy or webhook, has the API server store something else.
const (
	Fighting         plan.Reason = "Fighting"
	AdmissionChanges plan.Reason = "AdmissionChanges"
)

const (
	// quickRepairs is how many repairs of one clone within fightWindow are done
	// without a pause.
	quickRepairs = 5
	fightWindow  = time.Minute
	// After that, and at once if admission undoes them, the pause starts at firstPause and
	// doubles with each repair.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// fight is the recent repairs of one clone.
type fight struct {
	repairs int
	// since is the time of the first counted repair, last of the latest.
	since, last time.Time
	// pause is the minimum time from the latest repair to the next; zero until
	// there are quickRepairs.
	pause time.Duration
	// reason and note are those of the latest Event; reported is true if that Event
	// belongs to the current pause.
	reason   plan.Reason
	note     string
	reported bool
	// undone is what the latest write was for, and action its kind, if admission undid it;
	// else nil.
	undone *plan.Wanted
	action plan.Action
}

// over reports whether the clone was left unchanged for long enough.
func (f fight) over(now time.Time) bool { return now.Sub(f.last) > max(fightWindow, 2*f.pause) }

// active reports whether another client keeps undoing the repairs.
func (f fight) active(now time.Time) bool { return f.pause > 0 && !f.over(now) }

// countRepair counts a repair of the outcome's target, or a write that admission undid.
func (t *Tracker) countRepair(o Outcome, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	target := o.State.Target
	known, found := t.fights[target]
	switch {
	case !found || known.over(now), known.pause == 0 && now.Sub(known.since) > fightWindow:
		known = fight{since: now}
	case known.pause > 0:
		known.pause = min(2*known.pause, longestPause)
	case known.repairs+1 >= quickRepairs:
		known.pause = firstPause
	}
	if known.undone = nil; o.Undone != "" {
		known.undone, known.action, known.pause = o.State.Wanted(), o.Decision.Action, max(known.pause, firstPause)
	}
	known.repairs++
	known.last, known.reported = now, false
	t.fights[target] = known
	if now.Sub(t.pruned) > fightWindow {
		t.pruneFights(now)
	}
}

// ForgetFights forgets the fights that are over.
func (t *Tracker) ForgetFights(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pruneFights(now)
}

// pruneFights is ForgetFights. The lock is held.
func (t *Tracker) pruneFights(now time.Time) {
	maps.DeleteFunc(t.fights, func(_ object.Ref, known fight) bool { return known.over(now) })
	t.pruned = now
}

// WasUndone reports whether admission undid the same write before.
func (t *Tracker) WasUndone(state plan.State, decision plan.Decision) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.fights[state.Target]
	return decision.Desired != nil && known.undone != nil && known.action == decision.Action && known.undone.Equal(&state.Wanted().Common)
}

// IsFought reports whether another client keeps undoing the repairs of target.
func (t *Tracker) IsFought(target object.Ref, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fights[target].active(now)
}

// RepairWait returns how long the next repair of target must wait.
func (t *Tracker) RepairWait(target object.Ref, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.fights[target]
	if !known.active(now) {
		return 0
	}
	return max(0, known.last.Add(known.pause).Sub(now))
}

// FightReported stores what was reported about the fight over target.
func (t *Tracker) FightReported(target object.Ref, reason plan.Reason, note string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, found := t.fights[target]; found {
		known.reason, known.note, known.reported = reason, note, true
		t.fights[target] = known
	}
}

// IsFightReported reports whether the fight over target was reported in this pause.
func (t *Tracker) IsFightReported(target object.Ref) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fights[target].reported
}

// markFought returns cloneStatus with status Fighting if another client keeps undoing
// its repairs.
func (t *Tracker) markFought(cloneStatus survey.CloneStatus, now time.Time) survey.CloneStatus {
	known := t.fights[cloneStatus.Target]
	if (cloneStatus.Status == survey.Behind || cloneStatus.Status == survey.Drifting) && known.active(now) {
		cloneStatus.Status, cloneStatus.Since = survey.Fighting, known.since
		cloneStatus.Decision.Reason, cloneStatus.Decision.Message = cmp.Or(known.reason, Fighting), known.note
	}
	return cloneStatus
}

var doing = map[Cause]string{
	Edited: "changing this clone", Deleted: "deleting this clone", Unmarked: "removing Headwater's marks from this clone",
}

// FightNote returns the note of the Event about a fight. manager is the field
// manager that wrote the clone last; empty if unknown.
func FightNote(rule string, cause Cause, manager string) string {
	who, does := "another client (see the API server's audit log)", doing[cause]
	if manager != "" {
		who = fmt.Sprintf("field manager %q", manager)
	}
	return fmt.Sprintf("rule %q: %s keeps %s; Headwater repairs it with increasing pauses of up to %s. "+
		"Stop that client from writing the clone, or exclude the namespace from the rule", rule, who, does, longestPause)
}

// AdmissionNote returns the note of the Event about a clone whose field admission changes.
func AdmissionNote(rule, field string) string {
	return fmt.Sprintf("rule %q: the API server stores field %s otherwise than Headwater writes it, so a mutating admission policy or webhook changes it; "+
		"Headwater retries with increasing pauses of up to %s. Exclude objects with the label %s from that policy or webhook, or exclude the namespace from the rule",
		rule, field, longestPause, mark.CloneLabel)
}
