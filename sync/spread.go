package sync

import (
	"fmt"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

// spreads follows each change of a source until the last clone has it.
type spreads map[spreadKey]*spread

type spreadKey struct {
	rule   string
	source object.Ref
}

// spread is one change on its way.
type spread struct {
	// revision is the source's resourceVersion.
	revision string
	began    time.Time
	waiting  map[object.Ref]bool
	written  int
	failing  map[object.Ref]bool
}

// arrival is what spreads tells about one clone that was looked at.
type arrival struct {
	// took is the time since the change, for a clone that was written for it.
	took    time.Duration
	written bool
	// whole is the spread that ended with this clone.
	whole *spread
}

// begin starts to follow a change; one that is still on its way is given up.
func (s spreads) begin(key spreadKey, revision string, targets []object.Ref, now time.Time) {
	spread := &spread{revision: revision, began: now, waiting: make(map[object.Ref]bool, len(targets)), failing: map[object.Ref]bool{}}
	for _, target := range targets {
		spread.waiting[target] = true
	}
	s[key] = spread
}

// looked notes the outcome for one clone, decided by that revision of the
// source.
func (s spreads) looked(key spreadKey, revision string, target object.Ref, wrote, failed bool, now time.Time) arrival {
	spread := s[key]
	if spread == nil || spread.revision != revision {
		return arrival{}
	}
	wasWaiting := spread.waiting[target]
	delete(spread.waiting, target)
	var a arrival
	switch {
	case failed:
		spread.failing[target] = true
	case wasWaiting || spread.failing[target]:
		delete(spread.failing, target)
		if a.written = wrote; wrote {
			spread.written++
			a.took = now.Sub(spread.began)
		}
	}
	if wasWaiting && len(spread.waiting) == 0 {
		a.whole = spread
	}
	if len(spread.waiting) == 0 && len(spread.failing) == 0 {
		delete(s, key)
	}
	return a
}

// SpreadNote is the note of the Event about a change that has spread.
type SpreadNote struct {
	Rule            string
	Clones, Failing int
	Took            time.Duration
}

const spreadNote = "rule %q: %d clones written in %s, %d failing"

// String is the inverse of ParseSpreadNote.
func (n SpreadNote) String() string {
	return fmt.Sprintf(spreadNote, n.Rule, n.Clones, n.Took, n.Failing)
}

// ParseSpreadNote reads the note of a Propagated Event.
func ParseSpreadNote(note string) (n SpreadNote, ok bool) {
	var took string
	if _, err := fmt.Sscanf(note, "rule %q: %d clones written in %s %d failing", &n.Rule, &n.Clones, &took, &n.Failing); err != nil {
		return n, false
	}
	var err error
	n.Took, err = time.ParseDuration(strings.TrimSuffix(took, ","))
	return n, err == nil
}
