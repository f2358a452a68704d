package progress

import (
	"fmt"
	"maps"
	"time"

	"github.com/headwater-k8s/headwater/internal/again"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Fighting is the reason of the Event about a clone that somebody changes or
// deletes each time Headwater repairs it, and of the CloneStatus about it.
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

// Fights are the clones that were repaired a short while ago.
type Fights struct {
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

func NewFights() *Fights { return &Fights{by: map[object.Ref]fight{}} }

// over reports whether the clone was left alone for long enough.
func (f fight) over(now time.Time) bool { return now.Sub(f.last) > max(fightWindow, 2*f.pause) }

// Repaired counts a repair of target.
func (f *Fights) Repaired(target object.Ref, now time.Time) {
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
		f.Prune(now)
	}
}

// Prune forgets the clones that are left alone.
func (f *Fights) Prune(now time.Time) {
	maps.DeleteFunc(f.by, func(_ object.Ref, known fight) bool { return known.over(now) })
	f.pruned = now
}

// On reports whether somebody fights over target.
func (f *Fights) On(target object.Ref, now time.Time) bool {
	known := f.by[target]
	return known.pause > 0 && !known.over(now)
}

// Wait is how long the next repair of target has to wait.
func (f *Fights) Wait(target object.Ref, now time.Time) time.Duration {
	if !f.On(target, now) {
		return 0
	}
	return max(0, f.by[target].last.Add(f.by[target].pause).Sub(now))
}

// Report keeps what was reported of the fight over target.
func (f *Fights) Report(target object.Ref, note string) {
	if known, found := f.by[target]; found {
		known.note, known.reported = note, true
		f.by[target] = known
	}
}

// Reported reports whether the fight over target was reported in this pause.
func (f *Fights) Reported(target object.Ref) bool { return f.by[target].reported }

// Mark has finding say so when its write is a repair that somebody undoes.
func (f *Fights) Mark(finding survey.CloneStatus, now time.Time) survey.CloneStatus {
	if (finding.Status == survey.Behind || finding.Status == survey.Drifting) && f.On(finding.Target, now) {
		known := f.by[finding.Target]
		finding.Status, finding.Since = survey.Fights, known.since
		finding.Decision.Reason, finding.Decision.Message = Fighting, known.note
	}
	return finding
}

var doing = map[Cause]string{
	edited: "changing this clone", Deleted: "deleting this clone", Unmarked: "taking Headwater's marks off this clone",
}

// FightNote is the note of the Event about a fight. manager is the field manager
// that wrote the clone last, empty when the API server does not tell.
func FightNote(rule string, cause Cause, manager string) string {
	who, does := "another client, which the API server's audit log names,", doing[cause]
	if manager != "" {
		who = fmt.Sprintf("field manager %q", manager)
	}
	return fmt.Sprintf("rule %q: %s keeps %s; Headwater repairs it with growing pauses of up to %s. "+
		"Have that client leave the clone alone, or exclude the namespace from the rule", rule, who, does, longestPause)
}
