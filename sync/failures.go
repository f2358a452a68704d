package sync

import (
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

// failures are the clones whose last write failed; each is retried alone.
type failures map[object.Ref]failure

type failure struct {
	rule  string
	since time.Time
	err   error
}

func (f failures) add(target object.Ref, rule string, err error, now time.Time) {
	since := now
	if known, again := f[target]; again {
		since = known.since
	}
	f[target] = failure{rule, since, err}
}

// mark has f say so when the write that is due in its place failed.
func (f failures) mark(finding Finding) Finding {
	if failure, failed := f[finding.Target]; failed && finding.Step.Writes() {
		finding.Standing, finding.Since = Failed, failure.since
		finding.Step.Message = failure.err.Error() + retrying
	}
	return finding
}

const retrying = "; retrying with backoff"

// first returns up to n of them, those that failed longest first.
func (f failures) first(n int) []object.Ref {
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
