package sync

import (
	"fmt"
	"maps"
	"time"

	"github.com/headwater-k8s/headwater/internal/again"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Fighting is the reason of the Event about a clone that somebody changes or
// deletes each time Headwater repairs it, and of the Finding about it.
const Fighting = "Fighting"

const (
	// quickRepairs of one clone within fightWindow are made without a pause.
	quickRepairs = 5
	fightWindow  = time.Minute
	// After that the pause before a repair doubles with each.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// FightReported is how long ago the latest Event about a fight may be while the
// fight goes on.
const FightReported = again.After + 2*longestPause

// fights are the clones that were repaired a short while ago.
type fights struct {
	by     map[object.Ref]fight
	pruned time.Time
}

// fight is how often one clone was repaired.
type fight struct {
	repairs int
	// since is when they began to be counted, last the latest of them.
	since, last time.Time
	// pause is how long after the latest the next may be; zero until they are
	// too many.
	pause time.Duration
	// note is what was reported of it, reported whether it was in this pause.
	note     string
	reported bool
}

func newFights() *fights { return &fights{by: map[object.Ref]fight{}} }

// over reports whether the clone was left alone for long enough.
func (f fight) over(now time.Time) bool { return now.Sub(f.last) > max(fightWindow, 2*f.pause) }

// repaired counts a repair of target.
func (f *fights) repaired(target object.Ref, now time.Time) {
	known, found := f.by[target]
	switch {
	case !found || known.over(now), known.pause == 0 && now.Sub(known.since) > fightWindow:
		known = fight{since: now}
	case known.pause > 0:
		known.pause = min(2*known.pause, longestPause)
	case known.repairs+1 >= quickRepairs:
		known.pause = firstPause
	}
	known.repairs++
	known.last, known.reported = now, false
	f.by[target] = known
	if now.Sub(f.pruned) > fightWindow {
		f.prune(now)
	}
}

// prune forgets the clones that are left alone.
func (f *fights) prune(now time.Time) {
	maps.DeleteFunc(f.by, func(_ object.Ref, known fight) bool { return known.over(now) })
	f.pruned = now
}

// on reports whether somebody fights over target.
func (f *fights) on(target object.Ref, now time.Time) bool {
	known := f.by[target]
	return known.pause > 0 && !known.over(now)
}

// wait is how long the next repair of target has to wait.
func (f *fights) wait(target object.Ref, now time.Time) time.Duration {
	if !f.on(target, now) {
		return 0
	}
	return max(0, f.by[target].last.Add(f.by[target].pause).Sub(now))
}

// report keeps what was reported of the fight over target.
func (f *fights) report(target object.Ref, note string) {
	if known, found := f.by[target]; found {
		known.note, known.reported = note, true
		f.by[target] = known
	}
}

// reported reports whether the fight over target was reported in this pause.
func (f *fights) reported(target object.Ref) bool { return f.by[target].reported }

// mark has finding say so when its write is a repair that somebody undoes.
func (f *fights) mark(finding Finding, now time.Time) Finding {
	if (finding.Standing == Behind || finding.Standing == Drifting) && f.on(finding.Target, now) {
		known := f.by[finding.Target]
		finding.Standing, finding.Since = Fights, known.since
		finding.Step.Reason, finding.Step.Message = Fighting, known.note
	}
	return finding
}

var doing = map[cause]string{
	edited: "changing this clone", deleted: "deleting this clone", unmarked: "taking Headwater's marks off this clone",
}

// fightNote is the note of the Event about a fight. manager is the field manager
// that wrote the clone last, empty when the API server does not tell.
func fightNote(rule string, cause cause, manager string) string {
	who, does := "another client, which the API server's audit log names,", doing[cause]
	if manager != "" {
		who = fmt.Sprintf("field manager %q", manager)
	}
	return fmt.Sprintf("rule %q: %s keeps %s; Headwater repairs it with growing pauses of up to %s. "+
		"Have that client leave the clone alone, or exclude the namespace from the rule", rule, who, does, longestPause)
}
