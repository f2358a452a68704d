package revisions

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

// History is the recorded revisions of one source for one rule, oldest first.
type History []*Revision

// NewHistory returns the revisions in order.
func NewHistory(revisions []*Revision) History {
	slices.SortFunc(revisions, func(a, b *Revision) int { return cmp.Compare(a.Number, b.Number) })
	return revisions
}

// Newest returns the revision with the highest number; nil if there is none.
func (h History) Newest() *Revision { return h.last(func(*Revision) bool { return true }) }

// Stable returns the newest revision that passed every stage; nil if there is none.
func (h History) Stable() *Revision {
	return h.last(func(r *Revision) bool { return r.Verdict == Delivered })
}

// Candidate returns the revision that is being delivered; nil if there is none.
func (h History) Candidate() *Revision { return h.last((*Revision).UnderWay) }

// Pinned returns the revision that somebody rolled back to; nil if there is none.
func (h History) Pinned() *Revision {
	return h.last(func(r *Revision) bool { return r.Pinned != "" })
}

// EndsRollback reports whether the rollback to the pinned revision is over: a newer
// revision is under way, or the source was edited since. It goes on while the source
// has what was rejected, which is not delivered. current is the revision with the
// source's content. The rollback rejects what it finds under way with a write after
// that of the pinned revision, so h may not show it yet.
func (h History) EndsRollback(current *Revision) bool {
	over := h.Pinned().PinnedOver
	candidate := h.Candidate()
	return current.Number != over && current.Verdict != Rejected || candidate != nil && candidate.Number > over
}

// EndRollback returns the revisions that change when the rollback to the pinned one ends, in
// the order to write them. What comes after it was rolled back from, so that it is not
// stable any more, unless it is what is delivered now.
func (h History) EndRollback(current *Revision) (changed []Revision) {
	pinned := h.Pinned()
	for _, later := range h {
		if later.Number > pinned.Number && later.Verdict == Delivered && current.Verdict != Delivered {
			changed = append(changed, later.Settled(Rejected, fmt.Sprintf("rolled back to revision %d %s", pinned.Number, pinned.Pinned)))
		}
	}
	return append(changed, pinned.Unpinned())
}

// Base returns the revision that the next one is compared with: what somebody rolled back
// to, or the stable one; nil if there is neither.
func (h History) Base() *Revision { return cmp.Or(h.Pinned(), h.Stable()) }

// Numbered returns the revision with that number; nil if it is not kept.
func (h History) Numbered(number int) *Revision {
	return h.last(func(r *Revision) bool { return r.Number == number })
}

// DeliveredSince returns since when no clone had a revision that was not delivered, before the
// one with that number: a time after which every pod read what was delivered. It is zero if
// that is not known.
func (h History) DeliveredSince(number int) (since time.Time) {
	for at := number - 1; ; at-- {
		revision, next := h.Numbered(at), h.Numbered(at+1)
		switch {
		case at == 0:
			return time.Unix(0, 0)
		case revision == nil || next == nil || revision.Verdict != Delivered:
			return since
		}
		since = next.Recorded // by then, clones had it
	}
}

func (h History) last(accept func(*Revision) bool) *Revision {
	for _, revision := range slices.Backward(h) {
		if accept(revision) {
			return revision
		}
	}
	return nil
}

// RejectedBefore returns the revision of this content that was rejected; nil if there is
// none.
func (h History) RejectedBefore(content object.Content, digests object.Digests) *Revision {
	return h.last(func(r *Revision) bool { return r.Verdict == Rejected && r.SameContent(content, digests) })
}

// Of returns the revision that the source's content is, and nil if it is to be
// recorded as a new one. The stable content is never recorded twice, nor is the
// candidate's. Rejected content stays rejected: it is delivered again only when
// somebody asks for it.
func (h History) Of(content object.Content, digests object.Digests) *Revision {
	if stable := h.Stable(); stable != nil && stable.SameContent(content, digests) {
		return stable
	}
	return h.last(func(r *Revision) bool {
		return (r.UnderWay() || r.Verdict == Rejected) && r.SameContent(content, digests)
	})
}

const (
	// maxHistoryBytes bounds the size of a history, which each replica keeps in memory.
	maxHistoryBytes = 8 << 20
	// minKept is how many revisions are kept, whatever their size.
	minKept = 3
)

// Kept returns how many revisions of content are kept, of the most that a rule asks for:
// fewer if they would take too much room, but never fewer than 3.
func Kept(content object.Content, most int) int {
	size := 1
	for _, data := range []map[string][]byte{content.Data, content.BinaryData} {
		for key, value := range data {
			size += len(key) + len(value)
		}
	}
	return min(most, max(minKept, maxHistoryBytes/size))
}

// Surplus returns the revisions to delete so that at most keep are left: the
// oldest ones, never the stable one, the candidate, the pinned or the newest one. It
// keeps current, the one with the source's content, as well: without it, rejected
// content would be recorded as new.
func (h History) Surplus(keep int, current *Revision) []*Revision {
	var surplus []*Revision
	needed := []*Revision{h.Stable(), h.Candidate(), h.Pinned(), h.Newest(), current}
	for _, revision := range h {
		if len(h)-len(surplus) > keep && !slices.Contains(needed, revision) {
			surplus = append(surplus, revision)
		}
	}
	return surplus
}
