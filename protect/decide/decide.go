package decide

import (
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Decide returns whether request is allowed. It denies a request that it cannot
// read if the request may touch a protected object.
func Decide(request Request, set *rules.Set[spec.Rule], world World) Verdict {
	verdict := Verdict{Allowed: true, Reason: ReasonNotProtected}
	touched := request.Scope.restrict(touchedBy(request, set))
	for _, rule := range touched.sources {
		verdict = stricter(verdict, judge(request, operation(&rule, &request), rule, world))
	}
	for _, rule := range touched.namespaces {
		verdict = stricter(verdict, judgeNamespace(request, rule, world))
	}
	for _, rule := range touched.clones {
		verdict = stricter(verdict, judgeClone(request, rule, world))
	}
	if touched.marks {
		verdict = stricter(verdict, judgeMarks(request, set, world))
	}
	return verdict
}

func touchedBy(request Request, set *rules.Set[spec.Rule]) matches {
	switch {
	case request.Kind == spec.KindNamespace:
		return matches{namespaces: guardingRules(request, set)}
	case request.Operation == spec.Create:
		return matches{sources: protectingRules(request, set), marks: true}
	default:
		return matches{sources: protectingRules(request, set), clones: denyingRules(request, set), marks: true}
	}
}

// judge returns the verdict of one rule on a request that may do operation to one of
// its sources.
func judge(request Request, operation spec.Operation, rule spec.Rule, world World) Verdict {
	verdict := judgeAccess(request, operation, rule, world)
	if verdict.Message == "" && verdict.Reason != ReasonByHeadwater {
		if denied, isDenied := judgeContent(request, rule, world); isDenied {
			return denied
		}
	}
	return verdict
}

// judgeAccess decides whether the rule lets the user do operation. An unreadable update is denied even by a rule that does not
// cover updates: it can turn the object into a source.
func judgeAccess(request Request, operation spec.Operation, rule spec.Rule, world World) Verdict {
	fault := request.fault()
	switch {
	case !rule.Covers(operation) && (fault == "" || request.Operation != spec.Update):
		return Verdict{Allowed: true, Reason: ReasonOperationNotProtected, Rule: rule.Name}
	case fault != "":
		return refuse(rule, ReasonUnreadable, unreadableMessage(rule, fault))
	}
	if reason, by := exemption(request, rule, world); reason != "" {
		return allow(rule, reason, by)
	}
	changed := protectedChanges(rule, request, operation)
	switch {
	case request.Operation != spec.Update:
	case len(changed) == 0:
		return allow(rule, ReasonNoProtectedChange, "")
	case releasesOwners(request, changed, world):
		return allow(rule, ReasonGarbageCollection, request.User.Name)
	}
	verdict := refuse(rule, ReasonProtected, ProtectedMessage(rule, operation, request.Object()))
	verdict.Changed = changed
	return verdict
}

// protectingRules returns the rules that the object is a source of, before or
// after the request. Removing the selected label is therefore still checked. If
// the object is unknown, it returns the rules of all sources that it may be.
func protectingRules(request Request, set *rules.Set[spec.Rule]) []spec.Rule {
	ref, known := request.Ref()
	ambiguous := !known || request.Operation == spec.Update && request.New == nil
	var found []spec.Rule
	all := set.All()
	for i := range all { // do not copy each rule
		rule := &all[i]
		if ambiguous && mayBeSource(&request, rule) || !ambiguous && operationOn(rule, ref, &request) != "" {
			found = append(found, *rule)
		}
	}
	return found
}

// mayBeSource reports whether request may be about a source of rule, judging by
// kind and namespace only.
func mayBeSource(request *Request, rule *spec.Rule) bool {
	subject := request.subject()
	here := request.Namespace == "" || rule.Source.Namespace == request.Namespace ||
		subject != nil && rule.Source.Namespace == subject.Namespace
	return rule.Source.Kind == request.Kind && here
}

// guardingRules returns the rules that guard the namespace that the request
// deletes. If the namespace is unknown, it returns all guarding rules.
func guardingRules(request Request, set *rules.Set[spec.Rule]) []spec.Rule {
	if request.Operation != spec.Delete {
		return nil
	}
	old := request.Old
	unknown := old == nil || old.Name == "" || request.Name != "" && request.Name != old.Name
	var found []spec.Rule
	for _, rule := range set.All() {
		if rule.Guards() && (unknown || rule.Source.Namespace == old.Name) {
			found = append(found, rule)
		}
	}
	return found
}

func judgeNamespace(request Request, rule spec.Rule, world World) Verdict {
	if fault := request.fault(); fault != "" {
		return refuse(rule, ReasonUnreadable, unreadableMessage(rule, fault))
	}
	if request.Old.DeletionTimestamp != nil {
		return allow(rule, ReasonNamespaceTerminating, "")
	}
	if !world.HasSource(rule) {
		return allow(rule, ReasonSourceAbsent, "")
	}
	if reason, by := exemption(request, rule, world); reason != "" {
		return allow(rule, reason, by)
	}
	return refuse(rule, ReasonNamespaceGuarded, GuardedMessage(rule))
}

// exemption returns the reason why the requester may change the rule's source
// in any way, and the grant that allows it. reason is empty if there is none.
func exemption(request Request, rule spec.Rule, world World) (reason Reason, by string) {
	if isHeadwater(request.User, world) {
		return ReasonByHeadwater, ""
	}
	if request.Kind != spec.KindNamespace && request.Operation == spec.Delete &&
		isSystem(request.User, world) && world.Terminating(request.Namespace) {
		return ReasonNamespaceTerminating, request.User.Name
	}
	if by := grant(request.User, rule.Allow, world.Bound); by != "" {
		return ReasonExempt, by
	}
	return "", ""
}
