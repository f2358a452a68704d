package progress

import (
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Failures holds the clones whose last write failed. Each is retried on its own.
type Failures map[object.Ref]failure

type failure struct {
	Rule  string
	since time.Time
	err   error
}

// Add records a failed write of target. The time of the first failure in a row is
// kept.
func (f Failures) Add(target object.Ref, rule string, err error, now time.Time) {
	since := now
	if known, again := f[target]; again {
		since = known.since
	}
	f[target] = failure{rule, since, err}
}

// Mark returns cloneStatus with status Failed if the due write failed before.
func (f Failures) Mark(cloneStatus survey.CloneStatus) survey.CloneStatus {
	if failure, failed := f[cloneStatus.Target]; failed && cloneStatus.Decision.Writes() {
		cloneStatus.Status, cloneStatus.Since = survey.Failed, failure.since
		cloneStatus.Decision.Message = failure.err.Error() + Retrying
	}
	return cloneStatus
}

// Retrying is appended to the message of a failed write.
const Retrying = "; retrying with backoff"

// First returns at most n failing clones, those that have failed longest first.
func (f Failures) First(n int) []object.Ref {
	targets := make([]object.Ref, 0, len(f))
	for target := range f {
		targets = append(targets, target)
	}
	slices.SortFunc(targets, func(a, b object.Ref) int {
		if order := f[a].since.Compare(f[b].since); order != 0 {
			return order
		}
		return strings.Compare(a.String(), b.String())
	})
	return targets[:min(n, len(targets))]
}
