package prove

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/headwater-k8s/headwater/protect/manifests"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Proof is what last kept an account without exemption from forging a clone.
type Proof struct {
	// Known is false until there was an answer, or none for too long.
	Known bool
	// By is the engine that refused; empty when none did.
	By spec.Engine
}

// sentence says for people what p is.
func (p Proof) sentence() string {
	switch {
	case p.By != "":
		return "the API server refuses clones that others than Headwater mark as clones"
	case p.Known:
		return "nothing refuses clones that others than Headwater mark as clones"
	default:
		return "it is not known whether the API server refuses clones that others than Headwater mark as clones"
	}
}

// Status is whether a rule was last seen to protect, and since when.
type Status struct {
	Proven bool
	Since  time.Time
	// Why says what is wrong where it is not proven.
	Why string
}

const provenText, notProvenText = "proven", "not proven: "

// String is what ParseStanding reads.
func (s Status) String() string {
	text := provenText
	if !s.Proven {
		text = notProvenText + s.Why
	}
	return s.Since.UTC().Format(time.RFC3339) + " " + text
}

// ParseStatus reads what String wrote.
func ParseStatus(text string) (Status, error) {
	at, what, _ := strings.Cut(text, " ")
	since, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return Status{}, fmt.Errorf("%.40q does not begin with a time: %w", text, err)
	}
	if what == provenText {
		return Status{Proven: true, Since: since}, nil
	}
	why, cut := strings.CutPrefix(what, notProvenText)
	if !cut {
		return Status{}, fmt.Errorf("%.60q says neither %q nor %q", text, provenText, notProvenText)
	}
	return Status{Since: since, Why: why}, nil
}

// finding is what became of one attempt that Headwater should refuse.
type finding struct {
	// by is the engine that refused it; empty when none did.
	by spec.Engine
	// problem says what the answer was, if it was neither that nor success.
	problem string
}

func findingOf(err error) finding {
	if err == nil {
		return finding{}
	}
	if by := refusedBy(err); by != "" {
		return finding{by: by}
	}
	// No more of the text: where somebody else's admission wrote it, it may
	// quote the object.
	if reason := apierrors.ReasonForError(err); reason != "" {
		return finding{problem: fmt.Sprintf("the API server answered %s to the attempt, but not by Headwater's word", reason)}
	}
	return finding{problem: "the API server did not answer the attempt"}
}

// The words of the API server for what refused, which come before any of
// somebody else's choosing.
var (
	policyRefused  = regexp.MustCompile(`^[^:]* is forbidden: ValidatingAdmissionPolicy '([^']*)' with binding '([^']*)' denied request`)
	webhookRefused = regexp.MustCompile(`^admission webhook "[^"]*` + regexp.QuoteMeta(manifests.WebhookDomain) + `" denied the request`)
)

// refusedBy is the engine whose refusal err is; empty if it is none. A policy
// refuses by Headwater's word only where it bears a name of ours and is bound as
// we bind it: anybody else's may be left when ours are gone.
func refusedBy(err error) spec.Engine {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	if names := policyRefused.FindStringSubmatch(err.Error()); names != nil && names[1] == names[2] && slices.Contains(manifests.PolicyNames(), names[1]) {
		return spec.EnginePolicy
	}
	if webhookRefused.MatchString(err.Error()) {
		return spec.EngineWebhook
	}
	return ""
}

// judgeFindings says what the findings about a rule's sources prove, and if
// not that it protects, why.
func judgeFindings(findings []finding) (proven bool, why string) {
	for _, f := range findings {
		switch {
		case f.problem != "":
			why = f.problem
		case f.by == "":
			return false, "an account without exemption was let pass"
		}
	}
	return why == "", why
}

// next is the standing of a rule after another look. What may be a change that
// the API server has not learned of yet is not told before it has lasted for
// settling.
func (s Status) next(proven bool, why string, doubtfulFor, settling time.Duration, now time.Time) Status {
	switch {
	case proven && s.Proven, !proven && !s.Proven && s.Why == why:
		return s
	case !proven && doubtfulFor < settling:
		return s
	default:
		return Status{Proven: proven, Since: now, Why: why}
	}
}
