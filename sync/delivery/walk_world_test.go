package delivery_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

const (
	canaryNS, restNS = 0, 1
	mostRevisions    = 5
	mostEdits        = 3
	mostOthers       = 1
	soakTime         = time.Minute
	// badContent is what no consumer keeps running with.
	badContent = 3
)

// stageNames are those of both configurations: the first has canary and rest, the second
// calls the canary early.
var stageNames = []string{"canary", "rest", "early"}

// bits has a bit for each namespace, content or stage.
type bits uint8

func (b bits) has(at int8) bool { return b&(1<<at) != 0 }

func (b bits) set(at int8, on bool) bits {
	if on {
		return b | 1<<at
	}
	return b &^ (1 << at)
}

// record is a revision as the API server stores it, in a form that can be compared.
type record struct {
	// version is 0 if there is no such object, and uid what it was at first.
	version, uid  int16
	content, rule int8
	verdict       revisions.Verdict
	// stage and look are indexes of stageNames, look from 1. passed has a bit for each.
	stage, look int8
	passed      bits
	soaked      bool
	by          int8
	upTo        int16
	// These have a bit for each namespace.
	before, ran, waiting, failed, excused bits
}

type clone struct {
	version         int16
	content, number int8
}

type phase int8

const (
	starting phase = iota
	ready
	crashed
)

// pod is the one of the consumer in a namespace. One that is broken does not run, whatever
// it reads. One that is idle has no replica.
type pod struct {
	content      int8
	phase        phase
	broken, idle bool
}

// cluster is what the API server holds, and the configuration.
type cluster struct {
	source    int8
	revisions [mostRevisions]record
	clones    [2]clone
	pods      [2]pod
}

// actor is one process: its caches, each of which is as old as it likes, and what it
// remembers.
type actor struct {
	name   int8
	cached cluster
	seen   bool
	number int8
	state  delivery.State
	soaked bool
	ticked bool
}

type world struct {
	cluster

	actors [2]actor
	names  int8
	// rule and stages say which name the rule, and its first stage, has in the file.
	rule, stages int8
	version      int16
	// edits are those of the source, and others all else that is done to the cluster.
	edits, others int8
	// ran, held and odd are what nobody sees: the contents that the consumer of each
	// namespace ran, and its clone had, when they were recorded or since; and the consumers that
	// were broken or idle.
	ran, held [2]bits
	odd       bits
	// wrong is why a stage passed that must not.
	wrong string
}

type walk struct {
	// in are the stages of both configurations.
	in    [2]*stages.Stages
	known map[record]*revisions.Revision
}

func nameOf(stage string) int8 { return int8(slices.Index(stageNames, stage)) }

func (w walk) revision(one record, number int8) *revisions.Revision {
	if known := w.known[one]; known != nil && known.Number == int(number) {
		return known
	}
	r := &revisions.Revision{Number: int(number), Rule: "app", Source: source, Verdict: one.verdict}
	r.Content, r.Digests = content(fmt.Sprint(one.content))
	w.known[one] = r
	r.Evidence.Before = map[string]revisions.Condition{}
	for ns := range int8(2) {
		if one.before.has(ns) {
			r.Evidence.Before[consumer(ns)] = revisions.Failing
		}
	}
	if !r.UnderWay() {
		return r
	}
	r.Stage = stageNames[one.stage]
	for at, name := range stageNames {
		if one.passed.has(int8(at)) {
			r.Passed = append(r.Passed, name)
		}
	}
	if one.soaked {
		r.Soaked = soakTime
	}
	e := &r.Evidence
	if one.by > 0 {
		e.Version, e.By = 1, fmt.Sprint(one.by)
	}
	if one.look > 0 {
		e.Look = stageNames[one.look-1]
	}
	if one.upTo > 0 {
		e.UpTo, e.Readers = fmt.Sprint(one.upTo), 2
	}
	for at, name := range stageNames {
		e.Stages = append(e.Stages, one.evidence(name, int8(at%2)))
		if e.Stages[at].Failed > 0 {
			e.Failing = append(e.Failing, consumer(int8(at%2)))
		}
	}
	return r
}

func consumer(ns int8) string { return fmt.Sprint("ns-", ns, "/Deployment/web") }

// evidence is what the record says of a stage, whose namespace is ns.
func (one record) evidence(stage string, ns int8) revisions.StageEvidence {
	found := revisions.StageEvidence{Name: stage}
	if one.ran.has(ns) || one.waiting.has(ns) || one.failed.has(ns) || one.excused.has(ns) {
		found.Namespaces = 1
	}
	if one.ran.has(ns) {
		found.Ran, found.Proven = 1, 1
	}
	if one.waiting.has(ns) {
		found.Waiting, found.Unhealthy = 1, 1
	}
	if one.failed.has(ns) {
		found.Failed, found.Unhealthy = 1, 1
	}
	return found
}

func (w walk) history(c *cluster, rule int8) revisions.History {
	var all []*revisions.Revision
	for at, one := range c.revisions {
		if one.version > 0 && one.rule == rule {
			all = append(all, w.revision(one, int8(at+1)))
		}
	}
	return revisions.NewHistory(all)
}

func (w walk) held(c *cluster, history revisions.History, ns int) *revisions.Revision {
	one := c.clones[ns]
	found := history.Numbered(int(one.number))
	if found == nil || c.revisions[one.number-1].content != one.content {
		return nil
	}
	return found
}

// create records a revision, unless there is an object of its name already.
func (w walk) create(s *world, next revisions.Revision, of int8) {
	if next.Number > mostRevisions || s.revisions[next.Number-1].version > 0 {
		return
	}
	s.version++
	one := record{version: s.version, uid: s.version, content: of, rule: s.rule, verdict: next.Verdict, stage: max(0, nameOf(next.Stage))}
	s.revisions[next.Number-1] = one
	if next.UnderWay() {
		for ns, runs := range s.pods {
			s.ran[ns], s.held[ns] = s.ran[ns].set(of, runs.content == of && runs.phase == ready), s.held[ns].set(of, s.clones[ns].content == of)
		}
	}
}

// store writes a revision, if the process has seen its latest version.
func (w walk) store(s *world, a *actor, next revisions.Revision) bool {
	stored, cached := &s.revisions[next.Number-1], a.cached.revisions[next.Number-1]
	if stored.version != cached.version {
		return false
	}
	s.version++
	stored.version, stored.verdict, stored.soaked, stored.passed = s.version, next.Verdict, next.Soaked >= soakTime, 0
	for _, name := range next.Passed {
		stored.passed = stored.passed.set(nameOf(name), true)
	}
	stored.stage = max(0, nameOf(next.Stage))
	if next.Evidence.Version == 0 {
		one := record{version: stored.version, uid: stored.uid, content: stored.content, rule: stored.rule, verdict: stored.verdict, stage: stored.stage, passed: stored.passed, soaked: stored.soaked}
		*stored = one
	}
	return true
}

// sync does the first thing that is due, as the deliverer does.
func (w walk) sync(s *world, a *actor) {
	c, in := &a.cached, w.in[s.stages]
	history := w.history(c, s.rule)
	if w.takeOver(s, a, history) {
		return
	}
	data, digests := content(fmt.Sprint(c.source))
	current, differ := history.Of(data, digests), c.clones[0].content != c.clones[1].content
	if one := c.clones[0]; history.Stable() == nil && !differ && one.content != c.source {
		if one.version == s.clones[0].version {
			w.create(s, revisions.Revision{Number: nextNumber(history), Verdict: revisions.Delivered}, one.content)
		}
		return
	}
	if current == nil {
		edit := delivery.Edit{Rule: "app", Source: source, Content: data, Digests: digests}
		if history.Stable() == nil && differ {
			edit.Unclear = "the clones differ"
		}
		w.create(s, delivery.Next(history, edit, in), c.source)
		return
	}
	for _, one := range history {
		if one.UnderWay() && one != current {
			w.store(s, a, one.Settled(revisions.Superseded, ""))
			return
		}
	}
	if candidate := history.Candidate(); candidate != nil && candidate.Verdict == revisions.Delivering {
		w.advance(s, a, history, candidate)
		return
	}
	a.seen = false
}

func nextNumber(history revisions.History) int {
	if newest := history.Newest(); newest != nil {
		return newest.Number + 1
	}
	return 1
}

// takeOver hands the newest revision of the rule's earlier name to the present one.
func (w walk) takeOver(s *world, a *actor, own revisions.History) bool {
	left := w.history(&a.cached, 1-s.rule).Newest()
	if left == nil || s.rule == 0 || slices.ContainsFunc(own, func(r *revisions.Revision) bool { return r.Number <= left.Number }) {
		return false
	}
	stored := &s.revisions[left.Number-1]
	if stored.version == a.cached.revisions[left.Number-1].version {
		s.version++
		stored.version, stored.rule = s.version, s.rule
	}
	return true
}

func (w walk) advance(s *world, a *actor, history revisions.History, candidate *revisions.Revision) {
	c, in := &a.cached, w.in[s.stages]
	var places []delivery.Place
	for ns := range 2 {
		if candidate.HasReached(in, ns) {
			held := w.held(c, history, ns)
			places = append(places, delivery.Place{Stage: ns, Reached: held == candidate, Version: fmt.Sprint(c.clones[ns].version)})
		}
	}
	judged := delivery.Judge(in, candidate, places, fmt.Sprint(a.name))
	var before *delivery.Observation
	var elapsed time.Duration
	number := int8(candidate.Number)*4 + nameOf(candidate.Stage)
	if a.seen && a.number == number {
		before = &delivery.Observation{Judged: delivery.Judged{State: a.state, Fails: candidate.Evidence.Failing}}
		if a.soaked {
			before.Soaked = soakTime
		}
		if a.ticked {
			elapsed = soakTime
		}
	}
	step := delivery.Advance(in, candidate, judged, before, elapsed)
	a.seen, a.number, a.state, a.soaked, a.ticked = true, number, step.State, step.Soaked >= soakTime, false
	next, _ := delivery.Apply(in, *candidate, step, stages.Rollback, birth)
	if next.Verdict != candidate.Verdict || next.Stage != candidate.Stage || next.Soaked != candidate.Soaked {
		if w.store(s, a, next) && (step.Outcome == delivery.NextStage || step.Outcome == delivery.Passed) {
			s.wrong = w.unproven(s, candidate)
		}
	}
}

// unproven says what is missing for the candidate's stage to pass; empty if nothing is.
func (w walk) unproven(s *world, candidate *revisions.Revision) string {
	evidence, of := 0, s.revisions[candidate.Number-1].content
	for ns := range int8(2) {
		if !candidate.HasReached(w.in[s.stages], int(ns)) {
			continue
		}
		ran := s.ran[ns].has(of)
		if ran {
			evidence++
		}
		if !s.held[ns].has(of) || !ran && !s.odd.has(ns) {
			return fmt.Sprintf("namespace %d did not run revision %d", ns, candidate.Number)
		}
	}
	if evidence == 0 {
		return fmt.Sprintf("nothing ran revision %d", candidate.Number)
	}
	return ""
}

// candidate is what reload judges.
func (w walk) candidate(s *world, c *cluster) *revisions.Revision {
	candidate := w.history(c, s.rule).Candidate()
	if candidate == nil || candidate.Verdict != revisions.Delivering || w.in[s.stages].Index(candidate.Stage) < 0 {
		return nil
	}
	return candidate
}

// look writes down which consumers fail when a stage opens, as reload does: without a look
// at the stored version.
func (w walk) look(s *world, a *actor) {
	c := &a.cached
	candidate := w.candidate(s, c)
	if candidate == nil || candidate.Evidence.Look == candidate.Stage {
		return
	}
	cached := c.revisions[candidate.Number-1]
	before := cached.before
	for ns := range int8(2) {
		is := c.clones[ns]
		if !candidate.HasReached(w.in[s.stages], int(ns)) || is.content == cached.content {
			continue
		}
		runs, delivered, undelivered := c.pods[ns], false, record{}
		for _, one := range c.revisions {
			if one.version > 0 && one.content == is.content {
				delivered = delivered || one.verdict == revisions.Delivered
				undelivered = one
			}
		}
		fails := runs.content == is.content && runs.phase == crashed && !runs.idle
		before = before.set(ns, before.has(ns) || delivered && fails || !delivered && undelivered.before.has(ns))
	}
	w.confirm(s, candidate, cached, func(next *record) {
		next.by, next.look, next.before, next.upTo = a.name, cached.stage+1, before, 0
	})
}

// judge writes evidence, as reload does. It reports whether there was something to write.
func (w walk) judge(s *world, a *actor) bool {
	c := &a.cached
	candidate := w.candidate(s, c)
	if candidate == nil || candidate.Evidence.Look != candidate.Stage {
		return false
	}
	cached := c.revisions[candidate.Number-1]
	return w.confirm(s, candidate, cached, func(next *record) {
		next.by, next.upTo = a.name, 0
		next.ran, next.waiting, next.failed, next.excused = 0, 0, 0, 0
		for at, one := range c.clones {
			ns := int8(at)
			next.upTo = max(next.upTo, one.version)
			if one.content != cached.content || !candidate.HasReached(w.in[s.stages], at) {
				continue
			}
			runs := c.pods[ns]
			ran := runs.content == one.content && runs.phase == ready && !runs.idle
			if ran {
				next.before = next.before.set(ns, false)
			}
			excused, failed := next.before.has(ns), runs.content == one.content && runs.phase == crashed
			next.ran = next.ran.set(ns, ran)
			next.excused = next.excused.set(ns, excused && !runs.idle)
			next.failed = next.failed.set(ns, failed && !excused && !runs.idle)
			next.waiting = next.waiting.set(ns, !ran && !failed && !excused && !runs.idle)
		}
	})
}

// confirm writes what reload knows of the candidate, of which it has seen cached.
func (w walk) confirm(s *world, candidate *revisions.Revision, cached record, change func(*record)) bool {
	known, stored := cached, &s.revisions[candidate.Number-1]
	change(&known)
	if known == cached || stored.uid != cached.uid || stored.version == 0 {
		return false
	}
	s.version++
	stored.version = s.version
	stored.by, stored.look, stored.upTo = known.by, known.look, known.upTo
	stored.before, stored.ran, stored.waiting, stored.failed, stored.excused = known.before, known.ran, known.waiting, known.failed, known.excused
	return true
}

// write writes the clone of a namespace, if the process has seen its latest version.
func (w walk) write(s *world, a *actor, ns int) {
	c := &a.cached
	history := w.history(c, s.rule)
	got := delivery.Assign(w.in[s.stages], history, delivery.Clone{Namespace: fmt.Sprint("ns-", ns), Stage: ns, Has: w.held(c, history, ns)})
	if got == nil || c.clones[ns].version != s.clones[ns].version {
		return
	}
	next := clone{content: c.revisions[got.Number-1].content, number: int8(got.Number)}
	if has := s.clones[ns]; has.content == next.content && has.number == next.number {
		return
	}
	s.version++
	next.version = s.version
	s.clones[ns], s.held[ns] = next, s.held[ns].set(next.content, true)
}

// run lets the pod of a namespace go on: restart with what the clone has, get ready, crash.
func (w walk) run(s *world, ns int) {
	one := &s.pods[ns]
	switch {
	case one.idle:
	case one.content != s.clones[ns].content:
		one.content, one.phase = s.clones[ns].content, starting
	case one.phase == starting && one.broken:
		one.phase = crashed
	case one.phase == starting:
		one.phase = ready
		s.ran[ns] = s.ran[ns].set(one.content, true)
	case one.phase == ready && one.content == badContent:
		one.phase = crashed
	}
}

// tick lets the soak time pass. A process that has not seen and judged everything by then
// has not looked.
func (w walk) tick(s *world) {
	for _, one := range s.pods {
		if one.content == badContent && one.phase == ready {
			return
		}
	}
	for i := range s.actors {
		a, probe := &s.actors[i], *s
		if a.cached != s.cluster || w.judge(&probe, a) && w.judgedBy(s, a.name) {
			a.seen = false
		}
		a.ticked = true
	}
}

// judgedBy reports whether that process wrote the evidence on the candidate.
func (w walk) judgedBy(s *world, name int8) bool {
	candidate := w.history(&s.cluster, s.rule).Candidate()
	return candidate != nil && candidate.Evidence.By == fmt.Sprint(name)
}
