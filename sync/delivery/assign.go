package delivery

import "github.com/headwater-k8s/headwater/sync/spec"

// Assign returns the revision whose content a clone gets; nil if none may be
// written now, so that an existing clone stays as it is. stage is that of the
// clone's namespace, and has is the revision that the clone says it was written
// from; 0 for a clone that does not exist.
//
// A revision that somebody rolled back to goes everywhere. Else the candidate goes
// to the stages that it has reached. Elsewhere a clone keeps the revision it has
// until its own stage comes, so that nobody is restarted without need; but a
// rejected revision is kept nowhere. Everything else gets the stable revision.
func Assign(stages *spec.Stages, history History, stage, has int) *Revision {
	if pinned := history.Pinned(); pinned != nil {
		return pinned
	}
	candidate := history.Candidate()
	if candidate != nil {
		if stage <= stages.Index(candidate.Stage) {
			return candidate
		}
		if own := history.Numbered(has); own != nil && own.Verdict != Rejected {
			return own
		}
	}
	return history.Stable()
}

// ChangesAssigned reports whether a change of a revision may change what Assign returns.
// before is nil if the revision was recorded. now is the history after the change. If
// the revision was deleted, after is nil, and ChangesAssigned is false where only clones
// of the deleted revision get another one.
func ChangesAssigned(now History, before, after *Revision) bool {
	switch {
	case before == nil:
		return true
	case after != nil:
		return before.Verdict != after.Verdict || before.Stage != after.Stage || (before.Pinned == "") != (after.Pinned == "")
	default:
		stable := now.Stable()
		wasStable := before.Verdict == Delivered && (stable == nil || stable.Number < before.Number)
		return before.Pinned != "" || before.UnderWay() || wasStable
	}
}
