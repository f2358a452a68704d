package reload

import (
	"hash/fnv"
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// stamp tells the stamp on a pod template from any other; zero is none.
type stamp uint64

func stampOf(annotations map[string]string) stamp {
	text, stamped := annotations[mark.RestartedFor]
	if !stamped {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text + " " + annotations[mark.RestartedAfter])) // a hash takes everything
	return stamp(sum.Sum64())
}

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

// undone says what somebody did to r, which was recorded of w.
func (r record) undone(hasher *digest.Hasher, w *Workload) Undone {
	baseline := w.Annotations[mark.Baseline]
	switch {
	case baseline == r.baseline && w.Stamp == r.stamp:
		return ""
	case baseline != r.baseline && isOurs(hasher, baseline), w.Stamp != r.stamp && w.Stamp != 0:
		return UndoneRolledBack
	default:
		return UndoneStripped
	}
}

// isOurs reports whether text is a baseline that was made with the key in use.
func isOurs(hasher *digest.Hasher, text string) bool {
	b, err := ParseBaseline(text)
	return err == nil && b.KeyID == hasher.ID()
}

// runs is the baseline of what pods of the workload run: where the restart was taken
// back before its rollout was complete, that from before it.
func (r record) runs(undone Undone) string {
	if undone == "" || len(r.replaced) == 0 {
		return r.baseline
	}
	b, err := ParseBaseline(r.baseline)
	if err != nil {
		return r.baseline
	}
	for id, sum := range r.replaced {
		b.entries[id] = sum
	}
	return b.String()
}

// restarted is r after a restart that was decided like that. Where an earlier one
// has not reached every pod either, nothing says what pods run.
func (r record) restarted(d Decision, restarts mark.Restarts, now stamp, recordedAt time.Time) record {
	next := record{baseline: d.Baseline, stamp: now, restarts: restarts, recordedAt: recordedAt, undos: r.undosBy(d.Undone)}
	was, err := ParseBaseline(d.Meanwhile)
	if err != nil {
		return next
	}
	is, err := ParseBaseline(d.Baseline)
	if err != nil {
		return next
	}
	next.replaced = map[entryID]entrySum{}
	for id, sum := range is.entries {
		_, unfinished := r.replaced[id]
		before, recorded := was.entries[id]
		switch {
		case unfinished:
			next.replaced[id] = entrySum{}
		case recorded && before != sum:
			next.replaced[id] = before
		}
	}
	return next
}

// undosBy is how many times in a row restarts were taken back, undone being what was
// done to r.
func (r record) undosBy(undone Undone) int {
	if undone == "" {
		return r.undos
	}
	return r.undos + 1
}

// found is the record of a workload on which an earlier leader wrote. If its rollout
// is not complete, nothing says what pods run that are not of the last restart.
func found(w *Workload, rollout *Rollout) record {
	r := record{
		seeded: true, baseline: w.Annotations[mark.Baseline], stamp: w.Stamp, recordedAt: w.RecordedAt,
		restarts: mark.ParseRestarts(w.Annotations[mark.RestartedAt], w.Annotations[mark.RestartedBefore]),
	}
	if w.Stamp == 0 || rollout.hasReplaced() {
		return r
	}
	b, err := ParseBaseline(r.baseline)
	if err != nil {
		return r
	}
	r.replaced = map[entryID]entrySum{}
	for id := range b.entries {
		r.replaced[id] = entrySum{}
	}
	return r
}

// isBehind reports whether w bears a later write of an earlier leader than r: what
// somebody takes back goes back in time.
func (r record) isBehind(w *Workload) bool {
	at := mark.ParseRestarts(w.Annotations[mark.RestartedAt], w.Annotations[mark.RestartedBefore]).Last()
	return r.seeded && w.Annotations[mark.Baseline] != r.baseline && !at.Before(r.restarts.Last())
}

// later is the one of two lists of restarts that goes further: what is written may
// have been taken back.
func later(a, b mark.Restarts) mark.Restarts {
	if b.Last().After(a.Last()) {
		return b
	}
	return a
}

// leastAfterUndo is how soon a restart that somebody took back is repeated, at the
// earliest. It doubles with each time that they do so before every pod is replaced,
// so that Headwater and a tool that always does it do not fight.
const leastAfterUndo = 5 * time.Second

// paceAfter is the pace of a restart that was taken back so many times in a row.
func paceAfter(undos int) Pace {
	after := leastAfterUndo
	for range undos - 1 {
		after = min(2*after, slowest)
	}
	return Pace{AfterUndo: after}
}
