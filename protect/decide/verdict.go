package decide

import (
	"strings"

	"github.com/headwater-k8s/headwater/protect/spec"
)

// Reason is why a request was allowed or denied. Reasons are values of metrics
// and log fields and must not be renamed.
type Reason string

// The reasons to allow a request.
const (
	// ReasonNotProtected: no rule protects the object.
	ReasonNotProtected Reason = "NotProtected"
	// ReasonOperationNotProtected: the rule does not list the operation.
	ReasonOperationNotProtected Reason = "OperationNotProtected"
	// ReasonNoProtectedChange: the update changes no protected field.
	ReasonNoProtectedChange Reason = "NoProtectedChange"
	// ReasonByHeadwater: Headwater sent the request.
	ReasonByHeadwater Reason = "ByHeadwater"
	// ReasonExempt: the rule allows the user.
	ReasonExempt Reason = "Exempt"
	// ReasonNamespaceTerminating: the namespace is being deleted, and
	// Kubernetes deletes its contents.
	ReasonNamespaceTerminating Reason = "NamespaceTerminating"
	// ReasonGarbageCollection: Kubernetes deletes a dependent of a deleted
	// owner, or releases an owner reference.
	ReasonGarbageCollection Reason = "GarbageCollection"
	// ReasonSourceAbsent: the namespace does not contain the source.
	ReasonSourceAbsent Reason = "SourceAbsent"
)

// The reasons to deny a request.
const (
	// ReasonProtected: the rule does not allow the user.
	ReasonProtected Reason = "Protected"
	// ReasonNamespaceGuarded: the namespace contains a source.
	ReasonNamespaceGuarded Reason = "NamespaceGuarded"
	// ReasonMarksChanged: only Headwater may change the marks of a clone.
	ReasonMarksChanged Reason = "MarksChanged"
	// ReasonInvalidContent: the content fails the checks of the rule.
	ReasonInvalidContent Reason = "InvalidContent"
	// ReasonUnreadable: the request is incomplete or contradictory.
	ReasonUnreadable Reason = "Unreadable"
	// ReasonInternalError: a bug in Headwater.
	ReasonInternalError Reason = "InternalError"
)

// Outcome is the result of a review, as a metric label value.
type Outcome string

// The outcomes. Warned and audited requests are violations that the API server
// admits, because of the rule's mode.
const (
	OutcomeAllowed Outcome = "allowed"
	OutcomeDenied  Outcome = "denied"
	OutcomeWarned  Outcome = "warned"
	OutcomeAudited Outcome = "audited"
)

// Verdict is the decision on a Request. It never contains a value of an object.
type Verdict struct {
	Allowed bool
	Reason  Reason
	// Rule is the name of the rule that decided. It is empty if none did.
	Rule string
	// Message says what was denied, by which rule, and who may do it. It is set
	// for every violation, in every mode.
	Message string
	// Warning is shown to the sender of an allowed request.
	Warning string
	// Warnings are further warnings, about Headwater's own configuration.
	Warnings []string
	// Audit are annotations for the API server's audit log.
	Audit map[string]string
	// Changed names the protected fields that the request would change.
	Changed []string

	mode spec.Mode
}

// Keys of Verdict.Audit.
const (
	auditRule      = "rule"
	auditReason    = "reason"
	auditGrant     = "allowed-by"
	auditViolation = "violation"
)

// Outcome returns the outcome of v. A violation that is allowed only because of
// the rule's mode is warned or audited.
func (v Verdict) Outcome() Outcome {
	switch {
	case !v.Allowed:
		return OutcomeDenied
	case v.Message == "":
		return OutcomeAllowed
	case v.mode == spec.Warn:
		return OutcomeWarned
	default:
		return OutcomeAudited
	}
}

// stricter returns the verdict that allows less. Of two equally strict ones it
// returns the first, unless that is ReasonNotProtected.
func stricter(first, second Verdict) Verdict {
	rank := func(v Verdict) int {
		switch {
		case v.Reason == ReasonNotProtected:
			return -1
		case v.Message == "":
			return 0
		default:
			return v.mode.Strictness()
		}
	}
	if rank(second) > rank(first) {
		return second
	}
	return first
}

func allow(rule spec.Rule, reason Reason, by string) Verdict {
	audit := map[string]string{auditRule: rule.Name, auditReason: string(reason)}
	if by != "" {
		audit[auditGrant] = by
	}
	return Verdict{Allowed: true, Reason: reason, Rule: rule.Name, Audit: audit, mode: rule.Mode}
}

// refuse returns the verdict on a violation: denied, warned or audited,
// depending on the rule's mode.
func refuse(rule spec.Rule, reason Reason, message string) Verdict {
	verdict := Verdict{
		Reason: reason, Rule: rule.Name, Message: message, mode: rule.Mode,
		Audit: map[string]string{auditRule: rule.Name, auditReason: string(reason)},
	}
	switch rule.Mode {
	case spec.Warn:
		verdict.Allowed = true
		verdict.Warning = strings.Join(strings.Fields(message), " ") // warnings are HTTP headers, which cannot contain line breaks
	case spec.Audit:
		verdict.Allowed = true
		verdict.Audit[auditViolation] = message
	default:
	}
	return verdict
}
