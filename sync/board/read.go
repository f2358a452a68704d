package board

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// countsLast bounds the age of Counts.
const countsLast = 10 * time.Second

// Key groups the clones that Counts counts together. Rule is survey.Reader.RuleLabel.
type Key struct {
	Rule   string
	Status survey.Status
	Reason plan.Reason
}

// Counts refreshes the board and returns how many clones stand how, and the longest
// waiting times of due writes; 0 for what no clone waits for.
func (b *Board) Counts() (clones map[Key]int, oldest progress.OldestPending) {
	b.Refresh(0, countsLast)
	b.mu.Lock()
	defer b.mu.Unlock()
	clones = make(map[Key]int, len(b.standings))
	for _, s := range b.standings {
		clones[Key{b.Reader.RuleLabel(s.Rule), s.Status, s.Reason}] += s.clones
	}
	oldest = progress.NoPending(b.Reader.RuleNames())
	for _, due := range b.due {
		oldest[due.key] = max(oldest[due.key], b.read.Sub(due.since))
	}
	return clones, oldest
}

// Rules returns the names of the rules in force, in the order of the file, and then
// those that only clones name.
func (b *Board) Rules() []string {
	names, known := b.Reader.RuleNames(), map[string]bool{}
	inForce := len(names)
	for _, name := range names {
		known[name] = true
	}
	b.Standings(func(s Standing, _ int) {
		if !known[s.Rule] {
			known[s.Rule] = true
			names = append(names, s.Rule)
		}
	})
	slices.Sort(names[inForce:])
	return names
}

// Waits is survey.CloneStatus.Waits of these clones.
func (s Standing) Waits() bool {
	return survey.CloneStatus{Status: s.Status, Decision: plan.Decision{Action: s.Action, Until: s.Until}}.Waits()
}

// Standings reports each standing and how many clones have it, as of the last Refresh.
func (b *Board) Standings(report func(s Standing, clones int)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.standings {
		report(s.Standing, s.clones)
	}
}

// Each reports the clones in namespace, or in all if that is empty, whose standing is
// wanted, as of the last Refresh. Neither function may use the board.
func (b *Board) Each(namespace string, wanted func(*Standing) bool, report func(survey.CloneStatus)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	each := func(name string) {
		for _, e := range b.namespaces[name].entries {
			if wanted(&e.Standing) {
				report(b.statusOf(name, e))
			}
		}
	}
	if namespace == "" {
		for name := range b.namespaces {
			each(name)
		}
	} else if b.namespaces[namespace] != nil {
		each(namespace)
	}
}

func (e entry) target(namespace string) object.Ref {
	return object.Ref{Kind: e.Kind, Namespace: namespace, Name: e.name}
}

func (b *Board) statusOf(namespace string, e entry) survey.CloneStatus {
	f := survey.CloneStatus{
		Rule: e.Rule, Source: e.Source, Target: e.target(namespace), Status: e.Status, Revision: e.Revision,
		Decision: plan.Decision{Action: e.Action, Reason: e.Reason, Message: e.Message, Until: e.Until}, Since: time.Unix(0, e.since), Seen: e.seen,
	}
	if e.Status == survey.Failed {
		return b.Tracker.Mark(f, b.read)
	}
	if hold := b.holds[e.Rule]; e.Reason == plan.MassRemoval && hold != nil {
		f.Decision.Message = hold.Message
	}
	return f
}

// Changes reports each namespace in which a clone stands otherwise than at an earlier
// version, as of the last Refresh. It returns the present version. all is true if it
// reported every namespace that has clones, because others may have lost theirs.
func (b *Board) Changes(version uint64, report func(namespace string)) (now uint64, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all = version < b.removed
	for name, known := range b.namespaces {
		if all || known.changed > version {
			report(name)
		}
	}
	return b.version, all
}
