package progress

import (
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Retrying is appended to the message of a failed write.
const Retrying = "; retrying with backoff"

// failure is about a clone whose last write failed. The controller retries each on
// its own.
type failure struct {
	rule  string
	since time.Time
	err   error
}

// FailingClone is a clone whose last write failed.
type FailingClone struct {
	Target object.Ref
	Rule   string
}

// fail records a failed write of target. The time of the first failure in a row is
// kept.
func (t *Tracker) fail(target object.Ref, rule string, err error, now time.Time) {
	since := now
	if known, failed := t.failures[target]; failed {
		since = known.since
	}
	t.failures[target] = failure{rule, since, err}
}

// markFailed returns cloneStatus with status Failed if the due write failed before.
func (t *Tracker) markFailed(cloneStatus survey.CloneStatus) survey.CloneStatus {
	if failure, failed := t.failures[cloneStatus.Target]; failed {
		cloneStatus.Status, cloneStatus.Since = survey.Failed, failure.since
		cloneStatus.Decision.Message = failure.err.Error() + Retrying
	}
	return cloneStatus
}

// Failure returns why the last write of target failed; empty if it did not.
func (t *Tracker) Failure(target object.Ref) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if failure, failed := t.failures[target]; failed {
		return failure.err.Error()
	}
	return ""
}

// LongestFailing returns at most n failing clones, those that have failed longest
// first.
func (t *Tracker) LongestFailing(n int) []FailingClone {
	t.mu.Lock()
	defer t.mu.Unlock()
	type failing struct {
		FailingClone

		since time.Time
	}
	all := make([]failing, 0, len(t.failures))
	for target, failure := range t.failures {
		all = append(all, failing{FailingClone{target, failure.rule}, failure.since})
	}
	slices.SortFunc(all, func(a, b failing) int {
		if order := a.since.Compare(b.since); order != 0 {
			return order
		}
		return strings.Compare(a.Target.String(), b.Target.String())
	})
	clones := make([]FailingClone, min(n, len(all)))
	for i := range clones {
		clones[i] = all[i].FailingClone
	}
	return clones
}
