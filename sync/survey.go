package sync

import (
	"cmp"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Standing is how a clone stands to what its rule says.
type Standing string

// The standings. A retained clone was left behind as its rule said, since the
// rule, the source or the namespace no longer calls for it; Headwater does not
// keep it in sync any more.
const (
	Current   Standing = "current"
	Behind    Standing = "behind"   // older than the source or not there yet
	Drifting  Standing = "drifting" // changed by somebody since it was written
	Conflicts Standing = "conflict" // somebody else's object, or another rule's clone, is in its place
	Refused   Standing = "refused"
	Held      Standing = "held"
	Fights    Standing = "fighting" // somebody undoes each repair of it
	Failed    Standing = "failed"
	Removing  Standing = "removing"
	Retained  Standing = "retained"
)

// IsFine reports whether nothing is left to do: the clone is in sync, or is
// retained, which is counted apart.
func (s Standing) IsFine() bool { return s == Current || s == Retained }

// Standings lists every Standing, the good one first.
var Standings = []Standing{Current, Behind, Drifting, Conflicts, Refused, Held, Fights, Failed, Removing, Retained}

// Finding is what was found out about one place and one rule.
type Finding struct {
	Rule   string
	Source object.Ref
	Target object.Ref
	Standing
	Step Step
	// Since is when it came to stand so, by the API server's clock; zero where
	// that is not known.
	Since time.Time
	// Written is when its source or what is in the place was last written, as
	// far as that is known: a failure from before is none any more.
	Written time.Time
}

// Look finds out what an object is like that lacks the clone label and may be
// written all the same; nil when that is not known. What a rule may take over
// counts as a conflict then.
type Look func(target object.Ref) *object.Digested

// Survey reports on every place that a rule wants and on every clone that none
// wants any more, the rules in the file's order. Places whose source is not
// read yet are left out.
func (o *Observer) Survey(maxFraction float64, look Look, report func(Finding)) {
	known := map[string]bool{}
	for _, rule := range o.live.Load().All() {
		known[rule.Name] = true
		held := o.heldStep(rule.Name, maxFraction)
		for _, source := range o.sources(rule.Base) {
			for _, target := range o.targets(rule, source) {
				o.survey(rule.Name, target, held, look, report)
			}
		}
		o.surveyLeftovers(rule.Name, held, report)
	}
	for _, rule := range o.formerRules(known) {
		o.surveyLeftovers(rule, o.heldStep(rule, maxFraction), report)
	}
}

// heldStep is the step in place of the removals of rule that are held, or nil.
func (o *Observer) heldStep(rule string, maxFraction float64) *Step {
	due, held := o.heldRemovals(rule, maxFraction)
	if !held {
		return nil
	}
	step := due.step(rule)
	return &step
}

func (o *Observer) survey(rule string, target object.Ref, held *Step, look Look, report func(Finding)) {
	state, err := o.state(target)
	if err != nil || len(state.Claims) == 0 {
		return // unread, or not wanted: a clone there is a leftover
	}
	at := slices.IndexFunc(state.Claims, func(c Claim) bool { return c.Rule.Name == rule })
	if at < 0 {
		return
	}
	if at == 0 {
		takeLook(&state, look)
	}
	reportClaim(state, at, func(string) *Step { return held }, report)
}

// takeLook finds out what Plan needs to know of an object without the label.
func takeLook(s *State, look Look) {
	if s.NeedsFound() {
		s.Found = look(s.Target)
	}
}

// reportClaim reports on the place for the rule that has this claim on it.
func reportClaim(s State, at int, held func(rule string) *Step, report func(Finding)) {
	claim := s.Claims[at]
	if at > 0 {
		step := outranked(claim.Rule.Name, s.Claims[0].Rule.Name)
		report(Finding{Rule: claim.Rule.Name, Source: claim.Ref, Target: s.Target, Standing: Conflicts, Step: step})
		return
	}
	complete(s, Finding{Rule: claim.Rule.Name, Source: claim.Ref, Target: s.Target, Step: Plan(s)}, held, report)
}

// reportLeftover reports on the clone in the place, which no rule claims.
func reportLeftover(s State, held func(rule string) *Step, report func(Finding)) {
	marks, ours := mark.Of(s.Clone)
	if !ours {
		return
	}
	complete(s, Finding{Rule: marks.Rule, Source: marks.Source, Target: s.Target, Step: Plan(s)}, held, report)
}

// complete reports finding with its status; held is asked about removals alone.
func complete(s State, finding Finding, held func(rule string) *Step, report func(Finding)) {
	if finding.Step.isGuarded() {
		if step := held(finding.Rule); step != nil {
			finding.Step = *step
		}
	}
	if finding.Standing = standing(s, finding.Step); finding.Standing != "" {
		finding.Since, finding.Written = since(s, finding.Standing), written(s)
		report(finding)
	}
}

// surveyLeftovers reports on the clones of rule that no rule claims.
func (o *Observer) surveyLeftovers(rule string, held *Step, report func(Finding)) {
	for _, clone := range o.clonesOf(rule) {
		state, err := o.state(clone.Ref())
		if err != nil || len(state.Claims) > 0 {
			continue
		}
		reportLeftover(state, func(string) *Step { return held }, report)
	}
}

// formerRules lists the rules that clones name and the file does not.
func (o *Observer) formerRules(known map[string]bool) []string {
	var former []string
	for _, kind := range object.Kinds {
		for _, clone := range o.caches.Clones[kind].List() {
			if marks, ours := mark.Of(clone); ours && !known[marks.Rule] {
				known[marks.Rule] = true
				former = append(former, marks.Rule)
			}
		}
	}
	slices.SortFunc(former, cmp.Compare)
	return former
}

// standing is empty for a place that nobody wants a clone in.
func standing(state State, step Step) Standing {
	switch step.Action {
	case Create:
		return Behind
	case Update, Recreate:
		return lagging(state)
	case Remove:
		return Removing
	case Release:
		return Retained
	case Hold:
		return Held
	case Refuse:
		if step.Reason == Conflict {
			return Conflicts
		}
		return Refused
	case Leave:
		return settled(state, step)
	}
	return ""
}

// lagging tells whether what is in the place was written before the source
// was, or changed since.
func lagging(state State) Standing {
	written := state.live()
	if written != nil && object.NewerThan(written.ResourceVersion, state.Claims[0].Source.ResourceVersion) {
		return Drifting
	}
	return Behind
}

func settled(state State, step Step) Standing {
	switch {
	case step.Reason == InSync:
		return Current
	case step.Reason == CloneTerminating && len(state.Claims) > 0:
		return Behind // recreated once it is deleted
	case step.Reason == CloneTerminating:
		return Removing
	case state.Clone != nil && step.Reason != NamespaceGone:
		return Retained
	default:
		return ""
	}
}

// since is when the place came to stand so, as far as the objects tell.
func since(s State, standing Standing) time.Time {
	switch standing {
	case Current, Drifting:
		if live := s.live(); live != nil {
			return live.ChangedAt
		}
	case Behind:
		if len(s.Claims) > 0 && s.Claims[0].Source != nil {
			return s.Claims[0].Source.ChangedAt()
		}
	default:
	}
	return time.Time{}
}

// written is when the source or what is in the place was last written.
func written(s State) time.Time {
	var at time.Time
	if live := s.live(); live != nil {
		at = live.ChangedAt
	}
	if len(s.Claims) > 0 && s.Claims[0].Source != nil {
		if changed := s.Claims[0].Source.ChangedAt(); changed.After(at) {
			at = changed
		}
	}
	return at
}

// Approvable returns the approval that would let go on what is held of rule.
func (o *Observer) Approvable(rule string, maxFraction float64, now time.Time) Approval {
	approval := Approval{At: now, Sources: map[string]string{}}
	if due, held := o.heldRemovals(rule, maxFraction); held {
		approval.Removals = len(due.targets)
	}
	o.Survey(maxFraction, func(object.Ref) *object.Digested { return nil }, func(f Finding) {
		if f.Rule != rule || f.Step.Reason != SourceEmptied {
			return
		}
		if source, _ := o.caches.Sources.Get(f.Source); source != nil {
			approval.Sources[f.Source.String()] = source.ResourceVersion
		}
	})
	return approval
}

// SourceState is what is known of one source of a rule.
type SourceState struct {
	Ref    object.Ref
	Exists bool
	// ChangedAt is when its payload was last written, by the API server's
	// clock; zero when that is not known.
	ChangedAt time.Time
}

// SourceStates lists the sources of rule; one given by name is listed also
// when it does not exist.
func (o *Observer) SourceStates(rule Rule) []SourceState {
	var states []SourceState
	for _, ref := range o.sources(rule.Base) {
		state := SourceState{Ref: ref}
		if source, _ := o.caches.Sources.Get(ref); source != nil {
			state.Exists, state.ChangedAt = true, source.ChangedAt()
		}
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b SourceState) int { return cmp.Compare(a.Ref.Name, b.Ref.Name) })
	return states
}
