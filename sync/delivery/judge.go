package delivery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
)

// Place is one namespace that the candidate has reached.
type Place struct {
	Namespace string
	// Stage is the index of its stage.
	Stage int
	// Reached is true if the clone has the candidate's content, and Version is then its
	// resourceVersion.
	Reached bool
	Version string
	// Why is why it could not be written; empty if that is not known.
	Why string
}

// State is how the gate of a delivery stands.
type State string

// The values of State.
const (
	// Unconfirmed: this process does not know. Time that passes counts for nothing.
	Unconfirmed State = "Unconfirmed"
	// Lacking: something is missing that the candidate cannot be blamed for: the look, clones that
	// could not be written yet, evidence.
	Lacking State = "Lacking"
	// Waiting: consumers are waited for.
	Waiting State = "Waiting"
	// Paced: only consumers that Headwater itself makes wait are waited for.
	Paced State = "Paced"
	// Holding: nothing is missing but time.
	Holding State = "Holding"
	// Failing: more consumers fail than the gate tolerates.
	Failing State = "Failing"
)

// Judged is how the gate stands now.
type Judged struct {
	State
	// Reason is why, in names only; empty for Holding.
	Reason string
	// Unclear is true while nobody is waited for but consumers that may fail for another
	// reason than the candidate.
	Unclear bool
	// Unread is true if no consumer reads what the candidate changes.
	Unread bool
	// Fails are the consumers that fail, also if the gate tolerates it.
	Fails []string
}

// shownPlaces is how many namespaces or consumers a reason names.
const shownPlaces = 3

// Judge decides how the gate of the candidate stands. places are the namespaces of every
// stage that it has reached, without those that cannot get a clone at all. by is the
// name of this process: evidence that another process wrote is not confirmed.
func Judge(in *stages.Stages, candidate *revisions.Revision, places []Place, by string) Judged {
	missing := unreached(places)
	if !in.NeedsEvidence() {
		if missing != "" {
			return Judged{State: Lacking, Reason: missing}
		}
		return Judged{State: Holding}
	}
	evidence := candidate.Evidence
	judged := Judged{Fails: evidence.Failing}
	confirmed := isConfirmed(candidate, places, by)
	if confirmed {
		judgeEvidence(in, candidate, &judged)
	}
	switch {
	case judged.State == Failing: // whatever else is missing
	case candidate.EvidenceUnread != nil:
		judged.State, judged.Reason = Unconfirmed, fmt.Sprintf("its evidence is not known: %v", candidate.EvidenceUnread)
	case evidence.Look != candidate.Stage:
		judged.State, judged.Reason = Lacking, fmt.Sprintf("stage %s opens once Headwater has looked at what fails there already%s", candidate.Stage, crowd(evidence))
	case missing != "" && judged.State == Waiting: // whatever else is missing
		judged.Reason += "; " + missing
	case missing != "":
		judged.State, judged.Reason = Lacking, missing
	case !confirmed:
		judged.State, judged.Reason = Unconfirmed, "Headwater has not looked at all consumers yet"
	}
	return judged
}

// isConfirmed reports whether this process judged the candidate's consumers in all places.
func isConfirmed(candidate *revisions.Revision, places []Place, by string) bool {
	evidence := candidate.Evidence
	return candidate.EvidenceUnread == nil && evidence.By == by && evidence.UpTo != "" && !newerThan(places, evidence.UpTo)
}

// newerThan reports whether a clone was written after version, so that its consumers were
// not judged since.
func newerThan(places []Place, version string) bool {
	return slices.ContainsFunc(places, func(p Place) bool { return object.NewerThan(p.Version, version) })
}

// unreached says which places do not have the candidate; empty if there are none.
func unreached(places []Place) string {
	var names []string
	for _, place := range places {
		if !place.Reached {
			name := place.Namespace
			if place.Why != "" {
				name += " (" + place.Why + ")"
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s without a clone of it: %s", plural.Of(len(names), "namespace"), listed(names))
}

// tally is the evidence of all reached stages. Stages within the tolerance wait for
// nobody.
type tally struct {
	evidence, waiting, unclear, paced, unhealthy int
	unproven                                     []string
	failing                                      bool
}

func judgeEvidence(in *stages.Stages, candidate *revisions.Revision, judged *Judged) {
	evidence := candidate.Evidence
	sum := tallied(in, candidate)
	needed := min(*in.Gate.Evidence, evidence.Readers)
	_, waived := candidate.Unproven[candidate.Stage]
	judged.Unread = evidence.Readers == 0
	switch {
	case len(evidence.Failing) > revisions.MaxFailing: // nobody knows how many more
		judged.State, judged.Reason = Failing, fmt.Sprintf("more than %d consumers fail%s", revisions.MaxFailing, causes(evidence, true))
	case sum.failing:
		judged.State, judged.Reason = Failing, plural.Of(sum.unhealthy, "namespace")+" unhealthy"+causes(evidence, true)
	case sum.waiting > 0:
		judged.State, judged.Reason = Waiting, fmt.Sprintf("waits for %s%s", plural.Of(sum.waiting, "consumer"), causes(evidence, false))
		judged.Unclear = sum.waiting == sum.unclear+sum.paced
		if sum.waiting == sum.paced {
			judged.State, judged.Unclear = Paced, false
		}
	case !waived && sum.evidence < needed:
		judged.State, judged.Reason = Lacking, fmt.Sprintf("no evidence: %d of %s that read what changed have run it; it takes %d", sum.evidence, plural.Of(evidence.Readers, "consumer"), needed)
	case len(sum.unproven) > 0:
		judged.State, judged.Reason = Lacking, "no evidence: no consumer in stage "+strings.Join(sum.unproven, ", ")+" has run it"
	default:
		judged.State = Holding
	}
}

func tallied(in *stages.Stages, candidate *revisions.Revision) (sum tally) {
	gate := in.Gate
	for _, stage := range candidate.Evidence.Stages {
		index := in.Index(stage.Name)
		if index < 0 || !candidate.HasReached(in, index) {
			continue
		}
		sum.evidence += stage.Ran
		if !in.Restart(index) {
			sum.evidence += stage.Refreshed
		}
		if _, waived := candidate.Unproven[stage.Name]; stage.Namespaces > 0 && stage.Proven == 0 && !waived {
			sum.unproven = append(sum.unproven, stage.Name)
		}
		tolerated := gate.Tolerates(stage.Namespaces)
		sum.failing = sum.failing || gate.Consumers == stages.GateHealthy && stage.Failed > tolerated
		if stage.Unhealthy > tolerated {
			sum.waiting, sum.unclear, sum.paced = sum.waiting+stage.Waiting, sum.unclear+stage.Unclear, sum.paced+stage.Paced
			sum.unhealthy += stage.Unhealthy
		}
	}
	return sum
}

// causes names the first consumers that fail, or that are waited for.
func causes(evidence revisions.Evidence, failing bool) string {
	var all []string
	for _, cause := range evidence.Causes {
		if cause.Failing == failing {
			why := cause.Reason
			if cause.Pod != "" {
				why += " in pod " + cause.Pod
			}
			all = append(all, cause.Consumer+" ("+why+")")
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + listed(all)
}

// crowd says that too many fail for the stage to open; empty if that is not so.
func crowd(evidence revisions.Evidence) string {
	if cause := evidence.Crowd(); cause != nil {
		return fmt.Sprintf(": %s fail or roll, and %d may", cause.Consumer, revisions.MaxBefore)
	}
	return ""
}

// listed names the first of names, sorted.
func listed(names []string) string {
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), shownPlaces)], ", ")
	if more := len(names) - shownPlaces; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
