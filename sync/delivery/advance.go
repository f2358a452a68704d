package delivery

import (
	"fmt"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
)

// Outcome is what becomes of a delivery now.
type Outcome string

// The values of Outcome.
const (
	// Wait: nothing changes but the sums.
	Wait Outcome = "Wait"
	// Moved: the configuration has a stage that comes first now.
	Moved Outcome = "Moved"
	// NextStage: the next stage starts.
	NextStage Outcome = "NextStage"
	// Passed: every stage has passed.
	Passed Outcome = "Passed"
	// Failed: the gate did not hold; Step.Reason says why.
	Failed Outcome = "Failed"
	// Unclear: the gate did not hold, maybe for another reason than the revision.
	Unclear Outcome = "Unclear"
	// AwaitsApproval: the stage passed, and waits for somebody since now.
	AwaitsApproval Outcome = "AwaitsApproval"
	// NoEvidence: evidence is missing for the time of the gate's timeout. The delivery goes
	// on when it comes.
	NoEvidence Outcome = "NoEvidence"
)

// Sums are sums of observed time in a stage; see revisions.Revision.
type Sums struct{ Soaked, Waited, Lacked time.Duration }

// Observation is what this process saw last of a delivery in its present stage.
type Observation struct {
	Judged
	Sums
}

// Step is the result of Advance.
type Step struct {
	Outcome Outcome
	Observation
	// Left is how much more observed time alone changes the outcome; 0 if it does not.
	Left time.Duration
	// NeedsApproval is true if it waits for `headwater promote`.
	NeedsApproval bool
}

// HasNoEvidence reports whether evidence has been missing for longer than the gate's timeout.
func (s Step) HasNoEvidence() bool { return s.State == Lacking && s.Left == 0 }

// Advance decides what becomes of the candidate, which is Delivering, while its gate
// stands as judged. before is what this process saw before that, and elapsed the time
// since; nil if it saw nothing of this stage yet, or not in a row: time in which nobody
// looked counts for nothing.
func Advance(in *stages.Stages, candidate *revisions.Revision, judged Judged, before *Observation, elapsed time.Duration) Step {
	step := Step{Outcome: Wait, Observation: Observation{judged, sums(in, candidate, judged, before, elapsed)}}
	if first := firstLeft(in, candidate); in.Name(first) != candidate.Stage {
		step.Outcome = Moved
		return step
	}
	timeout := in.Gate.Timeout.Duration
	switch judged.State {
	case Failing:
		step.Outcome = Failed
	case Waiting:
		step.wait(timeout, candidate)
	case Lacking:
		// The sum says that it was reported: of another timeout, it may be greater.
		if step.Left = timeout - step.Lacked; step.Left <= 0 && candidate.Lacked != timeout.Truncate(time.Millisecond) {
			step.Outcome, step.Lacked = NoEvidence, timeout
		}
	case Holding:
		step.hold(in, candidate)
	default:
	}
	step.Left = max(step.Left, 0)
	if candidate.Paused != "" && step.Outcome == Wait {
		step.Reason, step.Left = "paused "+candidate.Paused, 0
	}
	return step
}

// sums adds elapsed to what it was spent with. A sum that has all the time that it takes
// grows no further, so that a delivery that waits for somebody writes nothing.
func sums(in *stages.Stages, candidate *revisions.Revision, judged Judged, before *Observation, elapsed time.Duration) Sums {
	sum := Sums{candidate.Soaked, candidate.Waited, candidate.Lacked}
	if before == nil {
		if len(judged.Fails) > 0 { // it may be new
			sum.Soaked = 0
		}
		return sum
	}
	sum = before.Sums
	paused := candidate.Paused != ""
	switch {
	case !slices.Equal(before.Fails, judged.Fails):
		sum.Soaked = 0
	case before.State == Holding && judged.State == Holding:
		sum.Soaked = grown(sum.Soaked, elapsed, soakOf(in, candidate))
	}
	switch {
	case before.State == Waiting && !paused:
		sum.Waited += elapsed
	case before.State == Lacking && !paused:
		sum.Lacked = grown(sum.Lacked, elapsed, in.Gate.Timeout.Duration)
	}
	return sum
}

// grown returns sum with elapsed added, as far as limit.
func grown(sum, elapsed, limit time.Duration) time.Duration {
	return max(sum, min(sum+elapsed, limit))
}

// soakOf returns the soak time of the candidate's stage; 0 if there is no such stage.
func soakOf(in *stages.Stages, candidate *revisions.Revision) time.Duration {
	index := in.Index(candidate.Stage)
	if index < 0 {
		return 0
	}
	return in.Soak(index)
}

func (s *Step) wait(timeout time.Duration, candidate *revisions.Revision) {
	s.Left = timeout - s.Waited
	switch {
	case s.Left > 0 || candidate.Paused != "":
	case s.Unclear:
		s.Outcome, s.Reason = Unclear, "the cause is unclear: "+s.Reason
	default:
		s.Outcome, s.Reason = Failed, fmt.Sprintf("timeout after %s of waiting: %s", timeout, s.Reason)
	}
}

func (s *Step) hold(in *stages.Stages, candidate *revisions.Revision) {
	index := in.Index(candidate.Stage)
	s.Left = in.Soak(index) - s.Soaked
	switch {
	case s.Left > 0:
		s.Reason = fmt.Sprintf("healthy for %s of %s", s.Soaked.Round(time.Second), in.Soak(index))
		if s.Unread {
			s.Reason = fmt.Sprintf("nobody reads what changed; waits for %s of %s", s.Soaked.Round(time.Second), in.Soak(index))
		}
	case candidate.Paused != "":
	case in.NeedsApproval(index) && candidate.Approved == "":
		s.NeedsApproval, s.Reason = true, fmt.Sprintf("stage %s passed; waits for `headwater promote %s`", candidate.Stage, candidate.Rule)
		if candidate.Reason != s.Reason {
			s.Outcome = AwaitsApproval
		}
	case index == in.Last():
		s.Outcome = Passed
	default:
		s.Outcome = NextStage
	}
}

// sumInterval is how much a sum may grow before it is written.
const sumInterval = time.Minute

// Apply returns the candidate after a step, and whether the step is to be reported.
func Apply(in *stages.Stages, candidate revisions.Revision, step Step, onFailure stages.OnFailure, now time.Time) (next revisions.Revision, reported bool) {
	next = candidate
	switch step.Outcome {
	case Wait:
		return withSums(candidate, step), false
	case Moved:
		next.Passed = passedIn(in, &candidate)
		next.Enter(in.Name(firstLeft(in, &candidate)), now)
	case NextStage:
		next.Passed = append(passedIn(in, &candidate), candidate.Stage)
		next.Enter(in.Name(firstLeft(in, &next)), now)
	case Passed:
		next = candidate.Settled(revisions.Delivered, "")
	case NoEvidence, AwaitsApproval:
		next.Reason = step.Reason
		next.Soaked, next.Waited, next.Lacked = step.Soaked, step.Waited, step.Lacked
	case Failed:
		next.Verdict, next.Reason = revisions.Held, step.Reason
		if onFailure == stages.Rollback && !candidate.Legacy {
			next = candidate.Settled(revisions.Rejected, "stage "+candidate.Stage+": "+step.Reason)
		}
	case Unclear:
		next.Verdict, next.Reason = revisions.Held, step.Reason
	}
	return next, true
}

// withSums returns the candidate with the sums of step, if one of them is worth a write.
func withSums(candidate revisions.Revision, step Step) revisions.Revision {
	if worthWriting(candidate.Soaked, step.Soaked) || worthWriting(candidate.Waited, step.Waited) || worthWriting(candidate.Lacked, step.Lacked) {
		candidate.Soaked, candidate.Waited, candidate.Lacked = step.Soaked, step.Waited, step.Lacked
	}
	return candidate
}

// worthWriting reports whether a sum is written: if it was set back, and once a minute.
func worthWriting(stored, sum time.Duration) bool { return sum < stored || sum-stored >= sumInterval }

// passedIn returns the names of the stages that the candidate passed, also of one that an
// earlier version recorded.
func passedIn(in *stages.Stages, candidate *revisions.Revision) []string {
	passed := slices.Clone(candidate.Passed)
	for stage, name := range in.Names() {
		if candidate.HasPassed(in, stage) && !slices.Contains(passed, name) {
			passed = append(passed, name)
		}
	}
	return passed
}
