package progress

import (
	"maps"
	"sync"
	"time"
	"unique"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Tracker remembers what happened to clones while this process leads. It is safe
// for concurrent use; no method waits for anything but the lock.
type Tracker struct {
	mu sync.Mutex
	// failures holds the targets whose last write failed.
	failures map[object.Ref]failure
	// due holds since when targets wait for a write, as of the latest survey.
	due map[object.Ref]time.Time
	// changes holds the changes of targets that are not reconciled yet.
	changes map[object.Ref]ExternalChange
	fights  map[object.Ref]fight
	pruned  time.Time // when fights was last pruned
	// unlabelled holds clones that lost their label and cannot be repaired, as the
	// API server returned them. With it, a survey decides as reconcile did.
	unlabelled   map[object.Ref]*object.Digested
	propagations map[PropagationKey]*ongoing
	// completed is the latest propagation of each rule that wrote a clone.
	completed map[string]Completed
	firstPass firstPass
	emitted   dedupe.Notes[EventKey]
	// raised are the conditions of each target that has one, and raisers counts the targets
	// of each condition.
	raised  map[object.Ref][]unique.Handle[EventKey]
	raisers map[unique.Handle[EventKey]]int
	// edited is when the owner of a clone was last informed that an edit of it was undone.
	edited      map[object.Ref]time.Time
	editsPruned time.Time
	// removals are those of each rule within the latest RemovalsInterval.
	removals map[string]removals
	// names holds the targets whose name an object of somebody else has, or had, with when it
	// was found to be gone; zero while it is there. nameStaysFree is how long no clone takes it.
	names         map[object.Ref]time.Time
	nameStaysFree time.Duration
}

// NewTracker returns an empty Tracker. nameStaysFree is NameStaysFree, but for tests.
func NewTracker(nameStaysFree time.Duration) *Tracker {
	return &Tracker{
		failures: map[object.Ref]failure{}, due: map[object.Ref]time.Time{}, changes: map[object.Ref]ExternalChange{},
		fights: map[object.Ref]fight{}, unlabelled: map[object.Ref]*object.Digested{}, propagations: map[PropagationKey]*ongoing{},
		completed: map[string]Completed{}, raised: map[object.Ref][]unique.Handle[EventKey]{}, raisers: map[unique.Handle[EventKey]]int{},
		edited: map[object.Ref]time.Time{}, removals: map[string]removals{},
		names: map[object.Ref]time.Time{}, nameStaysFree: nameStaysFree,
	}
}

// Outcome is the result of one reconcile: the decision on State was carried out
// for Rule, or failed with Err.
type Outcome struct {
	State    plan.State
	Decision plan.Decision
	Rule     string
	// Undone is the first field that admission had the API server store otherwise than
	// Decision wrote it; empty if there is none.
	Undone string
	Err    error
}

// Record takes over the outcome of a reconcile. It returns what the outcome means
// for the changes that the target waited for.
func (t *Tracker) Record(o Outcome, now time.Time) []Arrival {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.Err != nil {
		t.fail(o.State.Target, o.Rule, o.Err, now)
	} else {
		delete(t.failures, o.State.Target)
	}
	if o.Err == nil && o.Undone == "" {
		delete(t.due, o.State.Target)
		if o.Decision.Writes() && t.fights[o.State.Target].undone != nil {
			delete(t.fights, o.State.Target)
		}
	}
	t.firstPass.note(o)
	return t.arrive(o, now)
}

// Mark returns cloneStatus with what this process remembers of the due write: that
// another client keeps undoing it, that it failed, or that it leaves a name free.
func (t *Tracker) Mark(cloneStatus survey.CloneStatus, now time.Time) survey.CloneStatus {
	if !cloneStatus.Decision.Writes() {
		return cloneStatus
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	cloneStatus.Decision = t.leaveName(cloneStatus.Target, cloneStatus.Decision, now)
	return t.markFailed(t.markFought(cloneStatus, now))
}

// NoteFound records the object that led to decision, if it is a clone that lost its
// label and cannot be repaired.
func (t *Tracker) NoteFound(state plan.State, decision plan.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if state.Found != nil && state.MadeByUs && decision.Action == plan.Refuse {
		t.unlabelled[state.Target] = state.Found
		return
	}
	delete(t.unlabelled, state.Target)
}

// Found returns the object that NoteFound recorded at target if it still has that
// resourceVersion. Otherwise Found forgets it and returns nil.
func (t *Tracker) Found(target object.Ref, version string) *object.Digested {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.unlabelled[target]
	if found != nil && found.ResourceVersion != version {
		delete(t.unlabelled, target)
		return nil
	}
	return found
}

// EventKey identifies equal Events: a source that is refused in a thousand
// namespaces is reported once.
type EventKey struct{ About, Reason, Note string }

// Due returns whether the Event is due now, and then counts it as emitted. An Event
// repeats only after a while, for another revision of the source, or when its condition
// comes back.
func (t *Tracker) Due(key EventKey, revision string, now time.Time) dedupe.Due {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.emitted.Due(key, revision, now)
}

// Raised records that these are now all conditions of target. A condition is over when no
// target has it any more.
func (t *Tracker) Raised(target object.Ref, keys []EventKey, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, raised := t.raised[target], make([]unique.Handle[EventKey], 0, len(keys))
	for _, key := range keys {
		handle := unique.Make(key)
		raised = append(raised, handle)
		t.raisers[handle]++
	}
	for _, key := range before {
		if t.raisers[key]--; t.raisers[key] == 0 {
			delete(t.raisers, key)
			t.emitted.Over(key.Value(), now)
		}
	}
	if t.raised[target] = raised; len(raised) == 0 {
		delete(t.raised, target)
	}
}

// editsAgain is how long further edits of a clone are undone without another Event.
const editsAgain = time.Hour

// NoteEdit reports whether the owner of a clone is to be informed that an edit of it was
// undone, and then counts that as done.
func (t *Tracker) NoteEdit(target object.Ref, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, known := t.edited[target]; known && now.Sub(last) < editsAgain {
		return false
	}
	if t.edited[target] = now; now.Sub(t.editsPruned) >= editsAgain {
		maps.DeleteFunc(t.edited, func(_ object.Ref, last time.Time) bool { return now.Sub(last) >= editsAgain })
		t.editsPruned = now
	}
	return true
}
