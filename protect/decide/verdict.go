package decide

import (
	"strings"

	"github.com/headwater-k8s/headwater/protect/spec"
)

// Reason says why a request passed or not. Reasons are values of metrics and
// log fields: they are never renamed.
type Reason string

// The reasons to let a request pass.
const (
	// ReasonNotProtected: no rule is about the object.
	ReasonNotProtected Reason = "NotProtected"
	// ReasonOperationNotProtected: the rule does not list the operation.
	ReasonOperationNotProtected Reason = "OperationNotProtected"
	// ReasonNoProtectedChange: the update touches nothing that is protected.
	ReasonNoProtectedChange Reason = "NoProtectedChange"
	// ReasonByHeadwater: Headwater itself asks.
	ReasonByHeadwater Reason = "ByHeadwater"
	// ReasonExempt: the rule allows the requester.
	ReasonExempt Reason = "Exempt"
	// ReasonNamespaceTerminating: the namespace is being deleted already, and
	// Kubernetes empties it.
	ReasonNamespaceTerminating Reason = "NamespaceTerminating"
	// ReasonGarbageCollection: Kubernetes lets go of an owner that is gone.
	ReasonGarbageCollection Reason = "GarbageCollection"
	// ReasonSourceAbsent: the namespace does not hold the source.
	ReasonSourceAbsent Reason = "SourceAbsent"
)

// The reasons to refuse a request.
const (
	// ReasonProtected: the rule does not allow the requester.
	ReasonProtected Reason = "Protected"
	// ReasonNamespaceGuarded: the namespace holds a source.
	ReasonNamespaceGuarded Reason = "NamespaceGuarded"
	// ReasonMarksChanged: the marks of clones are Headwater's alone.
	ReasonMarksChanged Reason = "MarksChanged"
	// ReasonUnreadable: the request cannot be made out.
	ReasonUnreadable Reason = "Unreadable"
	// ReasonInternalError: a bug in Headwater.
	ReasonInternalError Reason = "InternalError"
)

// Outcome is what becomes of a request, as a value of metrics.
type Outcome string

// The outcomes. Warned and audited requests pass: the rule's mode says so.
const (
	OutcomeAllowed Outcome = "allowed"
	OutcomeDenied  Outcome = "denied"
	OutcomeWarned  Outcome = "warned"
	OutcomeAudited Outcome = "audited"
)

// Verdict is the answer to a Request. It never holds a value of an object.
type Verdict struct {
	Allowed bool
	Reason  Reason
	// Rule names the rule that decided; empty when none did.
	Rule string
	// Message says what was refused, by which rule, and who may do it. It is
	// set for a violation of a rule, in every mode.
	Message string
	// Warning is shown to the requester of an allowed request.
	Warning string
	// Warnings are more of them, about Headwater's own configuration.
	Warnings []string
	// Audit goes to the API server's audit log.
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

// Outcome tells a request that passed from one that passed by the rule's mode
// alone.
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

// stricter returns the one of two verdicts that lets less pass; the first of
// equals, unless it is that of no rule at all.
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

// refuse does what the rule's mode says about a violation.
func refuse(rule spec.Rule, reason Reason, message string) Verdict {
	verdict := Verdict{
		Reason: reason, Rule: rule.Name, Message: message, mode: rule.Mode,
		Audit: map[string]string{auditRule: rule.Name, auditReason: string(reason)},
	}
	switch rule.Mode {
	case spec.Warn:
		verdict.Allowed = true
		verdict.Warning = strings.Join(strings.Fields(message), " ") // a header holds no line breaks
	case spec.Audit:
		verdict.Allowed = true
		verdict.Audit[auditViolation] = message
	default:
	}
	return verdict
}
