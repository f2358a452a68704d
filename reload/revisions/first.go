package revisions

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/health"
)

// lookFirst returns one with what the first look at the consumers of clone shows.
func (r *Reporter) lookFirst(clone *object.Digested, one tracked, consumers []health.Consumer, now time.Time) tracked {
	last, _ := mark.ParseConsumersReport(clone.Annotations[mark.Consumers])
	one.lookedAt, one.writtenAt = now, clone.ChangedAt
	if revision, delivered := r.revision(one.id); delivered && last.Revision == one.id.number && last.Health == mark.ConsumersUnhealthy {
		// An earlier leader looked first. The clone may have been repaired since, and what
		// it broke before must not count as older than the revision.
		one.writtenAt = revision.CreationTimestamp.Time
	}
	if last.Reason != "" {
		until := undeliveredUntil(r.view[clone.Kind].List(), last.Revision, one.id, now)
		one.blamed = health.BlamedIn(last, consumers, until, clone.ChangedAt, now)
	}
	one.failedBefore = firstFailing(clone, last, one, consumers, now)
	return one
}

// firstFailing returns the consumers that failed before clone was written: those that
// an earlier leader found, or those that fail right now, shortly after the write. last
// is the report on clone.
func firstFailing(clone *object.Digested, last mark.ConsumersReport, one tracked, consumers []health.Consumer, now time.Time) []string {
	switch {
	case last.Revision == one.id.number:
		return health.FailedBeforeIn(last)
	case now.Sub(clone.ChangedAt) < firstLook:
		return health.FailsNow(consumers, one.blamed, clone.ChangedAt, now)
	default:
		return nil
	}
}
