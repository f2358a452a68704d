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

// Proof is the result of the last attempt to forge a clone as an account
// without exemption.
type Proof struct {
	// Known is false until the result is certain.
	Known bool
	// By is the engine that denied the attempt. It is empty if none did.
	By spec.Engine
}

// sentence describes p for the log.
func (p Proof) sentence() string {
	switch {
	case p.By != "":
		return "verified: the API server denies forged clones"
	case p.Known:
		return "the API server allows users to forge clones"
	default:
		return "it is unknown whether the API server denies forged clones"
	}
}

// Status is whether a rule was verified to protect, and since when.
type Status struct {
	Proven bool
	Since  time.Time
	// Why is the reason if the rule is not proven.
	Why string
}

const provenText, notProvenText = "proven", "not proven: "

// String returns the form that ParseStatus reads.
func (s Status) String() string {
	text := provenText
	if !s.Proven {
		text = notProvenText + s.Why
	}
	return s.Since.UTC().Format(time.RFC3339) + " " + text
}

// ParseStatus parses the result of Status.String.
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

// finding is the result of one attempt that the API server should deny.
type finding struct {
	// by is the engine that denied it. It is empty if none did.
	by spec.Engine
	// problem describes an answer that is neither success nor a denial by
	// Headwater.
	problem string
}

func findingOf(err error) finding {
	if err == nil {
		return finding{}
	}
	if by := refusedBy(err); by != "" {
		return finding{by: by}
	}
	// Do not quote the error: another admission plugin may have written it, and
	// it may contain data of the object.
	if reason := apierrors.ReasonForError(err); reason != "" {
		return finding{problem: fmt.Sprintf("the API server answered the attempt with %s, but Headwater did not deny it", reason)}
	}
	return finding{problem: "the API server did not answer the attempt"}
}

// The start of the API server's message for a denial. It precedes any text that
// others can choose.
var (
	policyRefused  = regexp.MustCompile(`^[^:]* is forbidden: ValidatingAdmissionPolicy '([^']*)' with binding '([^']*)' denied request`)
	webhookRefused = regexp.MustCompile(`^admission webhook "[^"]*` + regexp.QuoteMeta(manifests.WebhookDomain) + `" denied the request`)
)

// refusedBy returns the engine that caused err, or "" if Headwater did not. A
// policy counts only if it and its binding have a name of Headwater's: other
// policies may deny the attempt as well.
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

// judgeFindings returns whether all attempts were denied, and if not, why.
func judgeFindings(findings []finding) (proven bool, why string) {
	for _, f := range findings {
		switch {
		case f.problem != "":
			why = f.problem
		case f.by == "":
			return false, "the API server allowed a change by an account without exemption"
		}
	}
	return why == "", why
}

// next returns the status after another attempt. A failed attempt changes the
// status only once the doubt has lasted for settling, because a change may not
// have reached every API server.
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
