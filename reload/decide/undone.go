package decide

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Undone is what somebody did to what Headwater wrote on a workload.
type Undone string

// The ways to undo it. Empty is not undone.
const (
	// UndoneStripped: the baseline or the stamp was taken off.
	UndoneStripped Undone = "Stripped"
	// UndoneRolledBack: an earlier one of Headwater's took its place, as by
	// kubectl rollout undo.
	UndoneRolledBack Undone = "RolledBack"
)

// Undone says what somebody did to r, which was recorded of w.
func (r Record) Undone(hasher *digest.Hasher, w *workload.Workload) Undone {
	baseline := w.Annotations[mark.Baseline]
	switch {
	case baseline == r.Baseline && w.Stamp == r.Stamp:
		return ""
	case baseline != r.Baseline && isOurs(hasher, baseline), w.Stamp != r.Stamp && w.Stamp != 0:
		return UndoneRolledBack
	default:
		return UndoneStripped
	}
}

// isOurs reports whether text is a baseline that was made with the key in use.
func isOurs(hasher *digest.Hasher, text string) bool {
	b, err := parseBaseline(text)
	return err == nil && b.keyID == hasher.ID()
}

// Runs is the baseline of what pods of the workload run: where the restart was taken
// back before its rollout was complete, that from before it.
func (r Record) Runs(undone Undone) string {
	if undone == "" || len(r.Replaced) == 0 {
		return r.Baseline
	}
	b, err := parseBaseline(r.Baseline)
	if err != nil {
		return r.Baseline
	}
	for id, sum := range r.Replaced {
		b.entries[id] = sum
	}
	return b.String()
}

// Restarted is r after a restart that was decided like that. Where an earlier one
// has not reached every pod either, nothing says what pods run.
func (r Record) Restarted(d Decision, restarts mark.Restarts, now workload.Stamp, recordedAt time.Time) Record {
	next := Record{Baseline: d.Baseline, Stamp: now, Restarts: restarts, RecordedAt: recordedAt, Undos: r.UndosBy(d.Undone)}
	was, err := parseBaseline(d.BaselineWhileWaiting)
	if err != nil {
		return next
	}
	is, err := parseBaseline(d.Baseline)
	if err != nil {
		return next
	}
	next.Replaced = map[EntryID]EntrySum{}
	for id, sum := range is.entries {
		_, unfinished := r.Replaced[id]
		before, recorded := was.entries[id]
		switch {
		case unfinished:
			next.Replaced[id] = EntrySum{}
		case recorded && before != sum:
			next.Replaced[id] = before
		}
	}
	return next
}

// UndosBy is how many times in a row restarts were taken back, undone being what was
// done to r.
func (r Record) UndosBy(undone Undone) int {
	if undone == "" {
		return r.Undos
	}
	return r.Undos + 1
}

// Found is the record of a workload on which an earlier leader wrote. If its rollout
// is not complete, nothing says what pods run that are not of the last restart.
func Found(w *workload.Workload, rollout *workload.Rollout) Record {
	r := Record{
		Seeded: true, Baseline: w.Annotations[mark.Baseline], Stamp: w.Stamp, RecordedAt: w.RecordedAt,
		Restarts: mark.ParseRestarts(w.Annotations[mark.RestartedAt], w.Annotations[mark.RestartedBefore]),
	}
	if w.Stamp == 0 || rollout.HasReplaced() {
		return r
	}
	b, err := parseBaseline(r.Baseline)
	if err != nil {
		return r
	}
	r.Replaced = map[EntryID]EntrySum{}
	for id := range b.entries {
		r.Replaced[id] = EntrySum{}
	}
	return r
}

// IsBehind reports whether w bears a later write of an earlier leader than r: what
// somebody takes back goes back in time.
func (r Record) IsBehind(w *workload.Workload) bool {
	at := mark.ParseRestarts(w.Annotations[mark.RestartedAt], w.Annotations[mark.RestartedBefore]).Last()
	return r.Seeded && w.Annotations[mark.Baseline] != r.Baseline && !at.Before(r.Restarts.Last())
}

// Later is the one of two lists of restarts that goes further: what is written may
// have been taken back.
func Later(a, b mark.Restarts) mark.Restarts {
	if b.Last().After(a.Last()) {
		return b
	}
	return a
}

// leastAfterUndo is how soon a restart that somebody took back is repeated, at the
// earliest. It doubles with each time that they do so before every pod is replaced,
// so that Headwater and a tool that always does it do not fight.
const leastAfterUndo = 5 * time.Second

// PaceAfter is the pace of a restart that was taken back so many times in a row.
func PaceAfter(undos int) spec.Pace {
	after := leastAfterUndo
	for range undos - 1 {
		after = min(2*after, spec.Slowest)
	}
	return spec.Pace{AfterUndo: after}
}

// Record is what Headwater last wrote on a workload.
type Record struct {
	// baseline is that of the workload, and stamp that of its pod template.
	Baseline string
	Stamp    workload.Stamp
	Restarts mark.Restarts
	// replaced are the sums that the pods ran before a restart of which the rollout
	// is not complete: if the restart is taken back, they run these still.
	Replaced map[EntryID]EntrySum
	// RecordedAt is Workload.RecordedAt from before that restart.
	RecordedAt time.Time
	// TakenBack is true from when the restart was taken back until the next one, and
	// undos is how many were in a row.
	TakenBack bool
	Undos     int
	// seeded is true for what an earlier leader wrote. Its last write may still be on
	// its way to the caches.
	Seeded bool
}
