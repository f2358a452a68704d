package decide

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// State is everything that a decision about a workload depends on.
type State struct {
	Hasher   *digest.Hasher
	Workload *workload.Workload
	// Owner says which workload is restarted in place of Workload.
	Owner workload.RootOwner
	// Inputs are what it and the workloads restarted through it consume. Unread is true
	// while caches that they need are not synced.
	Inputs []Input
	Unread bool
	Known  Known
	// Rollout is the one that follows a change of the pod template; nil if that starts
	// none. Pods are those of that template. Shared is true if others also belong to
	// workloads restarted through this one, about which Rollout says nothing.
	Rollout *workload.Rollout
	Pods    []*workload.Pod
	Shared  bool
	Windows spec.Windows
	// Full is true if no other rollout may start now. The leader leaves it false and
	// counts when it starts one.
	Full bool
	Now  time.Time
}

// Known is what is known of a workload besides its cached version. Without a running
// leader that is what its annotations say.
type Known struct {
	// Record is what Headwater last wrote; Recorded is false if it wrote nothing.
	Record   Record
	Recorded bool
	// Pending is true while the cached version is older than the last write. Baseline and
	// RestartedAt are the annotations of the newer one.
	Pending bool
	// AsWritten is true if the cached version is that which the last write left: what it then
	// lacks of that write, admission took off.
	AsWritten             bool
	Baseline, RestartedAt string
	// Restarts are the known ones. The annotations may have been reverted.
	Restarts mark.Restarts
	// RecordedAt is when the baseline was written that a restart is based on.
	RecordedAt time.Time
	// TemplateVersion is the resourceVersion at which the pod template was last written
	// after the data changed; empty if that was not observed.
	TemplateVersion string
	// Undecided is true for the first decision, which also acts on changes that pods
	// missed while nobody observed them.
	Undecided bool
	// Waits is why a restart waits already, and WaitsSince since when; empty if none does.
	Waits      WaitReason
	WaitsSince time.Time
	// Debounced is when the debounce ends; zero without one.
	Debounced time.Time
}

// undone returns how somebody reverted the last restart before every pod was replaced.
func (s *State) undone() Undone {
	k := s.Known
	switch {
	case !k.Recorded || len(k.Record.Replaced) == 0 || k.Pending:
		return ""
	case s.Workload.IsOwnStamp():
		return k.Record.Undone(s.Hasher, s.Workload)
	case s.Workload.Stamp != k.Record.Stamp || s.Workload.StampReverted(k.RestartedAt):
		return UndoneByOwner
	default:
		return ""
	}
}

// Stored returns the baseline of the data that the pods are known to run.
func (s *State) Stored() string { return s.Known.Record.RunningBaseline(s.undone()) }

// LostStamp reports whether the stamp of the last restart was removed, and no leader has
// checked what the pods run. The cache must show the last write, because the stamp may be
// part of it.
func (s *State) LostStamp() bool {
	at, _ := s.Known.Restarts.Format()
	return s.Workload.Stamp == 0 && !s.Known.Pending && s.Workload.LostStamp(at)
}

// lostBaseline reports whether somebody removed the baseline, and it can be written again:
// an owner of the workload would remove it again.
func (s *State) lostBaseline(stored string) bool {
	return s.Workload.Owner == nil && s.Known.Baseline != stored
}

// LostRestarts reports whether the annotations no longer show the last restart, and can be
// written again.
func (s *State) LostRestarts() bool {
	at, _ := s.Known.Restarts.Format()
	return at != "" && at != s.Known.RestartedAt && s.Workload.Owner == nil
}

// Reverted identifies what somebody reverted, for reports that are made once: the last
// record, or the restart; empty if nothing was reverted.
func (s *State) Reverted(d Decision) string {
	restartedAt, last := s.Workload.Annotations[mark.RestartedAt], s.Known.Record.Baseline
	lost := s.Known.Recorded && s.Workload.Owner != nil && s.Known.Baseline != last
	if !lost && (!s.Workload.StampReverted(restartedAt) || s.Known.Record.TakenBack) && d.Undone == "" {
		return ""
	}
	return last + restartedAt + "reverted" + string(d.Undone)
}

// RecordedAt returns when the baseline was written that the restart is based on.
func (s *State) RecordedAt(due Decision) time.Time {
	if due.Undone != "" || s.Known.Record.TakenBack {
		return s.Known.Record.RecordedAt
	}
	return s.Known.RecordedAt
}

// coverage says whether a rollout that Headwater did not start delivers the data of due.
func (s *State) coverage(due Decision) RolloutCoverage {
	if s.Shared || s.standsStill(due.Data) {
		return Undelivered
	}
	version, recordedAt := s.Known.TemplateVersion, s.RecordedAt(due)
	if written := s.Workload.RecordedAt; due.Undone == UndoneByOwner && !written.IsZero() {
		due.Data.At, recordedAt = written, time.Time{} // the data is older than the restart
	}
	if due.Staged {
		version = "" // a pod bound in the second of the write is no evidence
	}
	return CoverageOf(s.Rollout, s.Pods, due.Data, recordedAt, version, s.Now)
}

// standsStill reports whether a pod with older data holds the rollout up, maybe for ever. In a
// rollout that somebody else began, such a pod has to fail: one that is unready for a moment
// must not have every pod replaced twice.
func (s *State) standsStill(data Written) bool {
	pod := s.Rollout.Blocker(s.Pods)
	if pod == nil {
		return false
	}
	before, _ := data.split(s.Pods, false)
	own := s.Workload.Stamp != 0 && !s.Workload.Edited()
	return before > 0 && (own || pod.Trouble != 0 || pod.Failing(s.Now) != "")
}

// Undone is how somebody reverted what Headwater wrote on a workload.
type Undone string

// The ways to revert it. Empty means not reverted.
const (
	// UndoneStripped: the baseline or the stamp was removed.
	UndoneStripped Undone = "Stripped"
	// UndoneRolledBack: it was replaced by an earlier one, as by kubectl rollout undo.
	UndoneRolledBack Undone = "RolledBack"
	// UndoneByOwner: the owner, or the schema of the kind, removed the stamp, and would
	// again. So the restart is not repeated for the same data.
	UndoneByOwner Undone = "ByOwner"
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

// Restarted returns the record of a restart that follows s. now is its stamp. For
// references whose earlier restart has not reached every pod, the running data is unknown.
func (s *State) Restarted(d Decision, restarts mark.Restarts, now workload.Stamp) Record {
	r := s.Known.Record
	next := Record{Baseline: d.Baseline, Stamp: now, Restarts: restarts, RecordedAt: s.Workload.RecordedAt, Undos: r.UndosBy(d.Undone)}
	if r.TakenBack || len(r.Replaced) > 0 {
		next.RecordedAt = r.RecordedAt
	}
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

// Adopted returns the record of a baseline that was written after s. If it follows a
// reverted restart, the baseline contains the reverted change from now on.
func (s *State) Adopted(d Decision) Record {
	next := s.Known.Record
	next.Baseline, next.Restarts = d.Baseline, s.Known.Restarts
	if !s.Known.Pending {
		next.Stamp = s.Workload.Stamp
	}
	if d.Undone != "" {
		next.Replaced, next.TakenBack, next.Undos = nil, true, next.UndosBy(d.Undone)
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
// rollout is not complete, or was reverted, the data of its older pods is unknown.
func RecordFrom(w *workload.Workload, rollout *workload.Rollout) Record {
	r := Record{
		Seeded: true, Baseline: w.Annotations[mark.Baseline], Stamp: w.Stamp, RecordedAt: w.RecordedAt,
		Restarts: mark.ParseRestarts(w.Annotations[mark.RestartedAt], w.Annotations[mark.RestartedBefore]),
	}
	if reverted := w.StampReverted(w.Annotations[mark.RestartedAt]); !reverted && (w.Stamp == 0 || rollout.HasReplaced()) {
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

// IsShownBy reports whether w is as r was written. Each stamp names the restart before it,
// so it is no earlier one that somebody restored.
func (r Record) IsShownBy(w *workload.Workload) bool {
	return r.Baseline == w.Annotations[mark.Baseline] && r.Stamp == w.Stamp
}

// IsSameWrite reports whether r and other are of the same restart or baseline, repeated.
func (r Record) IsSameWrite(other Record) bool {
	return r.Baseline == other.Baseline && r.Stamp == other.Stamp
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
