package decide

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/protect/spec"
)

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
