package board

import (
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// maxChanged is how many changed targets are recorded one by one.
const maxChanged = 50_000

// Params is what New needs.
type Params struct {
	Reader      *survey.Reader
	Tracker     *progress.Tracker
	Lookup      survey.Lookup
	MaxFraction func() float64
	Now         func() time.Time
}

// Board is safe for concurrent use.
type Board struct {
	Params

	// marking guards what is to be evaluated.
	marking sync.Mutex
	changed map[object.Ref]struct{}
	// all is true if every target may have changed; changed does not matter then.
	all bool
	// since is when the first of the changes was recorded.
	since     time.Time
	followers map[loop.Wake]struct{}

	// mu guards the rest, also while targets are evaluated.
	mu sync.Mutex
	// read is when the last evaluation ended, and took how long it took.
	read time.Time
	took time.Duration
	// set are the rules of the last evaluation, and versions those of their sources.
	set      *rules.Set[spec.Rule]
	versions map[ruleSource]string
	// full has the kinds that had been read before the last evaluation.
	full map[object.Kind]bool
	// version counts the evaluations; removed is that of the last one by which a
	// namespace lost its last clone.
	version, removed uint64
	namespaces       map[string]*namespace
	standings        map[Standing]*standing
	// again holds the targets to evaluate each time.
	again map[object.Ref]struct{}
	// before is memory for evaluateTarget.
	before []entry
	// due holds the targets that wait for a write.
	due map[object.Ref]dueTarget
	// holds has the decision that replaces the removals of each rule, or nil, for the
	// rules with a clone that is due for removal.
	holds map[string]*plan.Decision
}

type ruleSource struct {
	rule   string
	source object.Ref
}

// namespace is what the board knows of the clones in one namespace.
type namespace struct {
	entries []entry
	// changed is the version at which one of them changed last.
	changed uint64
}

// entry is how one target stands for one rule.
type entry struct {
	name string
	*standing
	// since is when the status began, in nanoseconds since 1970. If seen is true, the
	// objects do not show that, and it is when the board saw it first.
	since int64
	seen  bool
}

// Standing is what clones have in common that stand the same.
type Standing struct {
	Rule   string
	Source object.Ref
	// Kind is that of the clones.
	Kind object.Kind
	survey.Status
	Action plan.Action
	Reason plan.Reason
	// Message is empty for what differs from clone to clone or from time to time:
	// failures and held removals.
	Message  string
	Revision int
	// Until is that of the decision, in UTC.
	Until time.Time
}

// standing counts the clones that stand so.
type standing struct {
	Standing

	clones int
}

// dueTarget is since when a target waits for a write, and for what.
type dueTarget struct {
	key   progress.PendingKey
	since time.Time
}

// New returns a Board that evaluates everything when it is read first.
func New(p Params) *Board {
	return &Board{
		Params: p, all: true, removed: 1, changed: map[object.Ref]struct{}{}, followers: map[loop.Wake]struct{}{},
		versions: map[ruleSource]string{}, namespaces: map[string]*namespace{}, standings: map[Standing]*standing{},
		again: map[object.Ref]struct{}{}, due: map[object.Ref]dueTarget{}, holds: map[string]*plan.Decision{},
		full: map[object.Kind]bool{},
	}
}

// Changed records that the state of the clones at targets may have changed. Call it after
// the change. It does not block.
func (b *Board) Changed(targets ...object.Ref) {
	b.mark(func() {
		for _, target := range targets {
			b.changed[target] = struct{}{}
		}
		b.all = len(b.changed) > maxChanged
	})
}

// AllChanged records that of every clone.
func (b *Board) AllChanged() { b.mark(func() { b.all = true }) }

// mark calls record unless everything is to be evaluated anyway. It wakes the followers
// if there was nothing to evaluate before.
func (b *Board) mark(record func()) {
	b.marking.Lock()
	defer b.marking.Unlock()
	if b.all {
		return
	}
	if len(b.changed) == 0 {
		b.since = b.Now()
		for wake := range b.followers {
			wake.Notify()
		}
	}
	record()
}

// Follow has wake notified when something changed since the board was read, until stop
// is called.
func (b *Board) Follow(wake loop.Wake) (stop func()) {
	b.marking.Lock()
	defer b.marking.Unlock()
	b.followers[wake] = struct{}{}
	return func() {
		b.marking.Lock()
		defer b.marking.Unlock()
		delete(b.followers, wake)
	}
}

// Unread reports whether the clones of kind had not been read yet at the last evaluation: then the
// board does not know them.
func (b *Board) Unread(kind object.Kind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.full[kind]
}

// take returns and forgets what is to be evaluated.
func (b *Board) take() (changed map[object.Ref]struct{}, all bool) {
	b.marking.Lock()
	defer b.marking.Unlock()
	changed, all = b.changed, b.all
	b.changed, b.all, b.since = map[object.Ref]struct{}{}, false, time.Time{}
	return changed, all
}

// unread returns for how long a change has not been evaluated; false if there is none.
func (b *Board) unread(now time.Time) (age time.Duration, any bool) {
	b.marking.Lock()
	defer b.marking.Unlock()
	return now.Sub(b.since), b.all || len(b.changed) > 0
}
