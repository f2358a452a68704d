package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
)

// ReplacedWithin is how long after its creation a source of a selector can replace
// one that is gone, as with names that end in a hash of the content.
const ReplacedWithin = 10 * time.Minute

// apart is how much later than the clones of a source another one must be created to
// replace it: sources that are created together do not replace each other.
const apart = 30 * time.Second

// Gone are the clones of a source that is gone, whose removal is due.
type Gone struct {
	Clones []object.Ref
	// Since is when the first of them was created.
	Since time.Time
}

// Add adds a clone that was created then.
func (g *Gone) Add(clone object.Ref, created time.Time) {
	if len(g.Clones) == 0 || created.Before(g.Since) {
		g.Since = created
	}
	g.Clones = append(g.Clones, clone)
}

// Came is a source that exists and is at most ReplacedWithin old.
type Came struct {
	UID types.UID
	At  time.Time
}

// replacement says which source replaced one that is gone, by the hash of its UID, and
// when the removal of its clones passed by that.
type replacement struct {
	by uint64
	Passed
}

// AddGone adds the due removals of clones whose source is gone from the rule's selector,
// by source. Each source in came replaces one that is older, once. So if m sources go and n
// come later, max(m-n, 0) count.
func (d *DueRemovals) AddGone(log RemovalLog, gone map[object.Ref]*Gone, came []Came, now time.Time) {
	used := d.stillReplaced(log, gone, now)
	came = slices.SortedFunc(slices.Values(came), func(a, b Came) int { return cmp.Compare(a.UID, b.UID) })
	came = slices.DeleteFunc(came, func(c Came) bool { return used[hashOf(string(c.UID))] })
	for _, source := range slices.SortedFunc(maps.Keys(gone), func(a, b object.Ref) int { return cmp.Compare(a.Name, b.Name) }) {
		hash := HashOf(source)
		at := slices.IndexFunc(came, func(c Came) bool { return c.At.Sub(gone[source].Since) >= apart })
		if _, replaced := d.replacements[hash]; !replaced && at >= 0 {
			d.replacements[hash] = replacement{hashOf(string(came[at].UID)), Passed{now, now.Add(d.RemoveAfter)}}
			came = slices.Delete(came, at, at+1)
		}
		if _, replaced := d.replacements[hash]; replaced {
			d.Replaced = append(d.Replaced, gone[source].Clones...)
		} else {
			d.Targets = append(d.Targets, gone[source].Clones...)
		}
	}
}

// stillReplaced takes over what log says of sources that were replaced, and returns by which, as the
// hash of its UID.
func (d *DueRemovals) stillReplaced(log RemovalLog, gone map[object.Ref]*Gone, now time.Time) (used map[uint64]bool) {
	used, d.replacements = map[uint64]bool{}, map[uint64]replacement{}
	for source, replaced := range log.replaced {
		switch {
		case d.Suspended: // its clones are due again once it is not
			replaced.Passed = replaced.void()
		case now.Sub(replaced.At) > ReplacedWithin || d.back.Has(source):
			continue
		}
		d.replacements[source], used[replaced.by] = replaced, true
	}
	for source, clones := range gone {
		if replaced, passed := log.replaced[HashOf(source)]; passed && !d.back.Has(HashOf(source)) {
			if replaced.isVoid() {
				replaced.Passed = Passed{now, now.Add(d.RemoveAfter)}
			}
			d.replacements[HashOf(source)], used[replaced.by] = replaced, true
			d.Total -= len(clones.Clones) // they wait, and count as gone
		}
	}
	return used
}

// all returns every due removal, those that do not count, too.
func (d DueRemovals) all() []object.Ref { return slices.Concat(d.Targets, d.approved, d.Replaced) }
