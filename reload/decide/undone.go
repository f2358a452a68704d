package decide

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Undone is how somebody reverted what Headwater wrote on a workload.
type Undone string

// The ways to revert it. Empty means not reverted.
const (
	// UndoneStripped: the baseline or the stamp was removed.
	UndoneStripped Undone = "Stripped"
	// UndoneRolledBack: it was replaced by an earlier one, as by kubectl rollout undo.
	UndoneRolledBack Undone = "RolledBack"
)

// Undone says how somebody reverted r, the last record of w.
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

// isOurs reports whether text is a baseline made with the current key.
func isOurs(hasher *digest.Hasher, text string) bool {
	b, err := parseBaseline(text)
	return err == nil && b.keyID == hasher.ID()
}

// RunningBaseline is the baseline of the data that the pods run. If the restart was
// reverted before its rollout was complete, that is the data from before it.
func (r Record) RunningBaseline(undone Undone) string {
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

// Restarted returns the record of a restart that follows r. For references whose
// earlier restart has not reached every pod, the running data is unknown.
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

// UndosBy counts how many restarts in a row were reverted, undone included.
func (r Record) UndosBy(undone Undone) int {
	if undone == "" {
		return r.Undos
	}
	return r.Undos + 1
}

// RecordFrom returns the record of a workload that an earlier leader wrote. If its
// rollout is not complete, the data of its older pods is unknown.
func RecordFrom(w *workload.Workload, rollout *workload.Rollout) Record {
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

// IsBehind reports whether an earlier leader wrote on w after r. A reverted write has
// an earlier restart time, so it is not mistaken for one.
func (r Record) IsBehind(w *workload.Workload) bool {
	at := mark.ParseRestarts(w.Annotations[mark.RestartedAt], w.Annotations[mark.RestartedBefore]).Last()
	return r.Seeded && w.Annotations[mark.Baseline] != r.Baseline && !at.Before(r.Restarts.Last())
}

// Later returns the list of restarts with the later end. The other one may have been
// reverted.
func Later(a, b mark.Restarts) mark.Restarts {
	if b.Last().After(a.Last()) {
		return b
	}
	return a
}

// leastAfterUndo is the least time before a reverted restart is repeated. It doubles
// with each revert in a row, so that Headwater does not fight a tool that always
// reverts.
const leastAfterUndo = 5 * time.Second

// PaceAfter returns the pace after that many reverts in a row.
func PaceAfter(undos int) spec.Pace {
	after := leastAfterUndo
	for range undos - 1 {
		after = min(2*after, spec.Slowest)
	}
	return spec.Pace{AfterUndo: after}
}

// Record is what Headwater last wrote on a workload.
type Record struct {
	// Baseline is the annotation of the workload. Stamp is that of its pod template.
	Baseline string
	Stamp    workload.Stamp
	Restarts mark.Restarts
	// Replaced are the checksums from before a restart whose rollout is not complete.
	// If the restart is reverted, pods still run that data.
	Replaced map[EntryID]EntrySum
	// RecordedAt is Workload.RecordedAt from before that restart.
	RecordedAt time.Time
	// TakenBack is true from a revert until the next restart. Undos counts the reverts
	// in a row.
	TakenBack bool
	Undos     int
	// Seeded is true for the record of an earlier leader. Its last write may not have
	// reached the caches yet.
	Seeded bool
}
