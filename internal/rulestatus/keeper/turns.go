package keeper

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

// reason is that of an Event about a condition that turned.
type reason string

const (
	ready        reason = "RuleReady"
	notReady     reason = "RuleNotReady"
	verified     reason = "RuleVerified"
	notVerified  reason = "RuleNotVerified"
	delivered    reason = "RuleDelivered"
	notDelivered reason = "RuleNotDelivered"
)

// turns are the reasons by the condition's type and whether it is true.
var turns = map[string]map[bool]reason{
	rulestatus.Ready:     {true: ready, false: notReady},
	rulestatus.Protected: {true: verified, false: notVerified},
	rulestatus.Delivered: {true: delivered, false: notDelivered},
}

// turn is one condition of one rule and whether it became true.
type turn struct {
	rule, condition string
	isTrue          bool
}

// reportTurns records an Event for each condition that is true now and was not, or the
// reverse.
func (k *Keeper) reportTurns(rule string, facts *rulestatus.Facts, before *stored, now rulestatus.Status, at time.Time) {
	for condition, reasons := range turns {
		was, is := before.Status.Condition(condition), now.Condition(condition)
		if was == nil || is == nil {
			continue
		}
		one := turn{rule, condition, is.Status == metav1.ConditionTrue}
		if one.isTrue == (was.Status == metav1.ConditionTrue) {
			continue
		}
		k.turns.Over(turn{rule, condition, !one.isTrue}, at)
		if k.turns.Due(one, "", at) == dedupe.NotDue {
			continue
		}
		event := events.Event{
			Rule: rule, Warning: now.Condition(rulestatus.Stalled) != nil && !one.isTrue, Reason: string(reasons[one.isTrue]), Action: "Report",
			Note: fmt.Sprintf("rule %q: %s is %s (%s): %s", rule, condition, is.Status, is.Reason, is.Message),
		}
		for _, event.About = range about(before, facts) {
			k.events.Record(event)
		}
	}
}

// about returns the RuleStatus, and the source if there is only one.
func about(before *stored, facts *rulestatus.Facts) []*corev1.ObjectReference {
	all := []*corev1.ObjectReference{events.Reference(rulestatus.GVR.GroupVersion().String(), rulestatus.Kind, before)}
	if facts.Sources.Total == 1 && len(facts.Sources.First) == 1 {
		source := facts.Sources.First[0]
		all = append(all, events.Reference("v1", source.Kind, &metav1.ObjectMeta{Namespace: source.Namespace, Name: source.Name, UID: facts.SourceUID}))
	}
	return all
}
