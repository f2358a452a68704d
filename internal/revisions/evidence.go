package revisions

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// evidenceVersion is the only form of the record that is read. Any other is not known.
const evidenceVersion = 1

const (
	// MaxBefore bounds Evidence.Before: with more, the stage does not open.
	MaxBefore = 1000
	// MaxFailing bounds Evidence.Failing, with more of which the stage has failed, and
	// Evidence.Broken.
	MaxFailing = 1000
	// MaxCauses bounds Evidence.Causes.
	MaxCauses = 10
)

// Condition is why a consumer is excused when a stage opens.
type Condition string

// The values of Condition.
const (
	// Failing: a pod of the consumer failed, and none of its pods ran an undelivered revision.
	Failing Condition = "failing"
	// Partly: the same, while others of its pods were ready. What fails is no worse than
	// before as long as one is ready with the revision.
	Partly Condition = "partly"
	// Rolling: a rollout that Headwater did not start was in progress.
	Rolling Condition = "rolling"
	// Hanging: no pod of the consumer was ready, and one had been on its node for long. That it is
	// not ready with the revision either says nothing of that; that it crashes does.
	Hanging Condition = "hanging"
)

// Evidence is what reload has seen of the readers of a revision. It is the value of the
// annotation mark.Evidence on the object that records the revision; reload alone writes it.
//
// A reader is a consumer whose pod template reads a changed key. A consumer is named
// "NAMESPACE/KIND/NAME".
type Evidence struct {
	Version int `json:"v"`
	// By is the name of the process that judged; see Process. What another name has seen is
	// not believed.
	By string `json:"by"`
	// Look is the name of the stage for which Before was written; empty before the first.
	// It stays valid when another process leads.
	Look string `json:"look"`
	// Before are the consumers of Look, and of the stages before it, that were failing or
	// rolling when their stage opened and have not been healthy since. It is complete.
	Before map[string]Condition `json:"before,omitempty"`
	// UpTo is the resourceVersion up to which every clone of the source was judged; empty
	// until Readers were counted.
	UpTo string `json:"upTo,omitempty"`
	// Readers counts the readers in all namespaces of the rule, idle ones included.
	Readers int `json:"readers"`
	// Idle counts those of them that only a person or a schedule moves.
	Idle int `json:"idle,omitempty"`
	// Stages are the stages that the revision has reached, in order.
	Stages []StageEvidence `json:"stages,omitempty"`
	// Failing names every consumer that fails with the revision. It is complete up to
	// MaxFailing; one more name than that says that there are more.
	Failing []string `json:"failing,omitempty"`
	// Broken names the namespaces in which a reader fails that does not count against the
	// revision, and none shows that it works. It is as complete as Failing.
	Broken []string `json:"broken,omitempty"`
	// Causes are the first failing or waiting readers, for people.
	Causes []Cause `json:"causes,omitempty"`
	// At is when it was judged, by the clock of By: for people alone.
	At time.Time `json:"at"`
}

// StageEvidence is what reload has seen in the reached namespaces of one stage. Ran to
// Paced count readers.
type StageEvidence struct {
	Name string `json:"name"`
	// Ran have a Ready pod that started with the revision. Refreshed only mount it, were
	// refreshed and are Ready, which proves nothing in a stage with restart.
	Ran       int `json:"ran,omitempty"`
	Refreshed int `json:"refreshed,omitempty"`
	// Waiting are waited for. Of them, Unclear were rolling before the stage opened or had
	// their pod template changed by somebody else since; Paced wait for Headwater's own
	// interval, hourly limit, window or rollout slot alone.
	Waiting int `json:"waiting,omitempty"`
	Unclear int `json:"unclear,omitempty"`
	Paced   int `json:"paced,omitempty"`
	// Namespaces have a reader that is not idle. Of them, Proven have one that gave
	// evidence, and Unhealthy one that fails or is waited for.
	Namespaces int `json:"namespaces,omitempty"`
	Proven     int `json:"proven,omitempty"`
	Unhealthy  int `json:"unhealthy,omitempty"`
	// Failed counts the namespaces in which a reader fails.
	Failed int `json:"failed,omitempty"`
}

// Cause is why one reader fails or is waited for.
type Cause struct {
	Consumer string `json:"consumer"`
	// Reason is one word, such as CrashLoopBackOff, Paced or ReasonStanding.
	Reason string `json:"reason"`
	Pod    string `json:"pod,omitempty"`
	// Failing is false if the reader is only waited for.
	Failing bool `json:"failing,omitempty"`
}

// ReasonStanding is the Reason of a StatefulSet that replaces no pod before Pod, which has
// something else, is ready. Only a person ends that, by deleting the pod.
const ReasonStanding = "Standing"

// ReasonCrowd is the Reason of a Cause that counts all that failed or rolled before the stage
// opened, if they are more than MaxBefore.
const ReasonCrowd = "FailingOrRollingBefore"

// Crowd returns the cause with ReasonCrowd; nil if there is none.
func (e Evidence) Crowd() *Cause {
	at := slices.IndexFunc(e.Causes, func(cause Cause) bool { return cause.Reason == ReasonCrowd })
	if at < 0 {
		return nil
	}
	return &e.Causes[at]
}

// Standing returns the causes with that reason.
func (e Evidence) Standing() (causes []Cause) {
	for _, cause := range e.Causes {
		if cause.Reason == ReasonStanding {
			causes = append(causes, cause)
		}
	}
	return causes
}

// ParseEvidence reads the record. An empty text is no evidence. A text that is not of
// this form is an error: the evidence is not known, and nothing goes on by it.
func ParseEvidence(text string) (e Evidence, err error) {
	if text == "" {
		return Evidence{}, nil
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return Evidence{}, fmt.Errorf("not readable: %w", err)
	}
	if e.Version != evidenceVersion {
		return Evidence{}, fmt.Errorf("version %d is not known", e.Version)
	}
	return e, nil
}

// String returns the record as it is stored.
func (e Evidence) String() string {
	e.Version = evidenceVersion
	text, err := json.Marshal(e)
	if err != nil { // no field can fail
		return ""
	}
	return string(text)
}

// FailsIn reports whether a consumer in namespace fails with the revision, also if that does
// not count against it, as far as that is known: with too many names, it is true everywhere.
func (e Evidence) FailsIn(namespace string) bool {
	return max(len(e.Failing), len(e.Broken)) > MaxFailing || slices.Contains(e.Broken, namespace) || slices.ContainsFunc(e.Failing, func(consumer string) bool {
		return strings.HasPrefix(consumer, namespace+"/")
	})
}

// Process is the random name of this process, or of the time since it last lost sight of
// the cluster. It is kept in memory alone, so that nobody else has it, and no later run.
type Process struct{ name atomic.Pointer[string] }

// NewProcess returns a Process with a new name.
func NewProcess() *Process {
	p := &Process{}
	p.Renew()
	return p
}

// Name returns the present name.
func (p *Process) Name() string { return *p.name.Load() }

// Renew takes a new name. What was seen under the name before is not believed any more:
// while a watch is broken, nobody looks.
func (p *Process) Renew() {
	name := rand.Text()
	p.name.Store(&name)
}
