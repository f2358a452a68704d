package rulestatus

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Todo is a rule that is not ready, and what to do about it.
type Todo struct {
	Rule string
	// Reason and Message are those of the condition Ready.
	Reason, Message string
	// Person is true if it does not go on by itself. Command then shows more, or lets it
	// go on.
	Person  bool
	Command string
}

// Todo returns what is to be done about the rule; false if it is ready.
func (s *Status) Todo(rule string) (Todo, bool) {
	ready := s.Condition(Ready)
	if ready == nil {
		return Todo{Rule: rule, Reason: "NotReported"}, true
	}
	if ready.Status == metav1.ConditionTrue {
		return Todo{}, false
	}
	todo := Todo{Rule: rule, Reason: ready.Reason, Message: ready.Message}
	_, asks := commands[ready.Reason]
	stalled := s.Condition(Stalled)
	if todo.Person = asks || stalled != nil && stalled.Status == metav1.ConditionTrue; todo.Person {
		todo.Command = s.commandFor(rule, ready.Reason)
	}
	return todo, true
}

func (s *Status) commandFor(rule, reason string) string {
	source := s.firstSource()
	switch command, asks := commands[reason]; {
	case reason == DeliveryHeld && s.Held != nil:
		return fmt.Sprintf("headwater approve %s --dry-run", rule)
	case reason == "SourceMissing" && source != nil:
		return fmt.Sprintf("kubectl -n %s events --for %s/%s", source.Namespace, strings.ToLower(source.Kind), source.Name)
	case asks:
		return command + " " + rule
	case s.Clones != nil && s.Clones.NeedAttention > 0:
		return "headwater plan -o wide"
	default:
		return "headwater status " + rule
	}
}

// commands are what to run about a rule that is not ready for that reason, before the name
// of the rule. Each of these reasons waits for a person.
var commands = map[string]string{
	DeliveryAwaitingApproval: "headwater promote",
	DeliveryNoEvidence:       "headwater history",
	DeliveryPaused:           "headwater resume",
	DeliveryPinned:           "headwater resume",
	DeliveryHeld:             "headwater history",
	DeliveryRejected:         "headwater history",
	protectionNotVerified:    "headwater who-can-edit",
}

// firstSource is nil if the status names none.
func (s *Status) firstSource() *Source {
	if s.Sources == nil || len(s.Sources.First) == 0 {
		return nil
	}
	return &s.Sources.First[0]
}
