package decide

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
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
	// ReasonReached: the prover tried whether the API server reaches the webhook.
	ReasonReached Reason = "Reached"
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

// Reached is the verdict on every request of scope AboutReach: a denial, by which the
// prover sees that the API server reaches the webhook.
func Reached() Verdict {
	return Verdict{Reason: ReasonReached, Message: "headwater: the API server reaches the webhook"}
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

// maxNamed limits the number of exempt users in a message.
const maxNamed = 8

// ProtectedMessage is the text for a request that rule does not allow. object
// names the object, for example "Secret platform/blogsecret". The rule's own
// message takes precedence.
func ProtectedMessage(rule spec.Rule, operation spec.Operation, object string) string {
	if rule.Message != "" {
		return rule.Message
	}
	if operation == spec.Create {
		return fmt.Sprintf("headwater: %s would be a source of rule %q, which protects it: %s may make it", object, rule.Name, whoMayEdit(rule.Allow))
	}
	return fmt.Sprintf("headwater: %s is protected by rule %q: %s may change it", object, rule.Name, whoMayEdit(rule.Allow))
}

// GuardedMessage is the text for the deletion of a namespace that contains a
// source of rule. The rule's own message takes precedence.
func GuardedMessage(rule spec.Rule) string {
	if rule.Message != "" {
		return rule.Message
	}
	return fmt.Sprintf("headwater: Namespace %s holds %s, which is protected by rule %q: %s may delete it",
		rule.Source.Namespace, SourceOf(rule), rule.Name, whoMayEdit(rule.Allow))
}

func unreadableMessage(rule spec.Rule, fault string) string {
	return fmt.Sprintf("headwater: denied a request that may touch %s, which is protected by rule %q: %s",
		SourceOf(rule), rule.Name, fault)
}

// MarksMessage is the text for a request that sets, changes or removes a label or
// annotation that only Headwater may write. object names the object.
func MarksMessage(operation spec.Operation, object string) string {
	if operation == spec.Create {
		return fmt.Sprintf("headwater: %s carries the label or annotations of a clone, which Headwater alone may set: "+
			"leave out what begins with %s", object, mark.Domain)
	}
	return fmt.Sprintf("headwater: %s would get other labels or annotations of a clone, which Headwater alone may set, change or remove: "+
		"leave what begins with %s as it is", object, mark.Domain)
}

func unreadableMarksMessage(fault string) string {
	return "headwater: denied a request that may change the headwater.dev/ labels or annotations of a clone: " + fault
}

// SourceOf describes the source of rule: its kind, namespace and name, or its
// kind and label selector.
func SourceOf(rule spec.Rule) string {
	if rule.BySelector() {
		return fmt.Sprintf("a %s selected by %s", rule.Source.Kind, metav1.FormatLabelSelector(rule.Source.Selector))
	}
	return fmt.Sprintf("%s %s/%s", rule.Source.Kind, rule.Source.Namespace, rule.Source.Name)
}

func whoMayEdit(allow spec.Allow) string {
	var who []string
	for _, role := range allow.ClusterRoles {
		who = append(who, fmt.Sprintf("ClusterRole %s (through a ClusterRoleBinding)", role))
	}
	for _, user := range allow.Users {
		who = append(who, "user "+user)
	}
	for _, group := range allow.Groups {
		who = append(who, "group "+group)
	}
	for _, account := range allow.ServiceAccounts {
		who = append(who, "service account "+account.Namespace+"/"+account.Name)
	}
	if more := len(who) - maxNamed; more > 0 {
		who = append(who[:maxNamed], fmt.Sprintf("%d more", more))
	}
	switch len(who) {
	case 0:
		return "only a holder of the override permission"
	case 1:
		return who[0]
	default:
		return strings.Join(who[:len(who)-1], ", ") + " or " + who[len(who)-1]
	}
}
