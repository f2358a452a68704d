package decide

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// denyingRules returns the rules with clones: Deny that the object of the
// request is a clone of. If the object is unknown, it returns those of the same
// kind.
func denyingRules(request Request, set *rules.Set[spec.Rule]) []spec.Rule {
	ref, known := request.Ref()
	var found []spec.Rule
	for _, rule := range set.All() {
		if rule.Clones == spec.Deny && (!known && rule.Source.Kind == request.Kind || known && isCloneOf(rule, ref, request.Old)) {
			found = append(found, rule)
		}
	}
	return found
}

// isCloneOf trusts the clone's labels and annotations: only Headwater can set
// them while a rule protects anything.
func isCloneOf(rule spec.Rule, ref object.Ref, old *object.Full) bool {
	return ref.Kind == rule.Source.Kind && mark.IsMarked(old) && old.Annotations[mark.Rule] == rule.Name
}

// judgeClone judges a request about a clone like one about its source. It also
// allows Kubernetes' controllers and the SystemIdentities to delete the clone:
// they do so when its namespace or owner is deleted, and an outage of Headwater
// must not block that.
func judgeClone(request Request, rule spec.Rule, world World) Verdict {
	if request.Operation == spec.Delete && request.fault() == "" && isSystem(request.User, world) {
		return allow(rule, ReasonGarbageCollection, request.User.Name)
	}
	rule.Copied = spec.Copied{} // users may add labels and annotations to a clone; sync repairs the copied ones
	return judge(request, request.Operation, rule, world)
}

// judgeMarks denies all users but Headwater to set, change or remove the labels
// and annotations that mark a clone. Otherwise a user could detach a clone from
// sync, or make Headwater overwrite or delete an unmanaged object. If the
// object is marked as a clone at its place neither before nor after the request,
// its labels and annotations have no effect and are not checked: a copy of a clone
// belongs to its owner.
func judgeMarks(request Request, set *rules.Set[spec.Rule], world World) Verdict {
	if len(set.All()) == 0 || !request.touchesCloneMarks() {
		return Verdict{Allowed: true, Reason: ReasonNotProtected}
	}
	rule := marksRule(request, set)
	if fault := request.fault(); fault != "" {
		return refuse(rule, ReasonUnreadable, unreadableMarksMessage(fault))
	}
	changed := changedMarks(request.Old, request.New)
	switch {
	case len(changed) == 0:
		return allow(rule, ReasonNoProtectedChange, "")
	case isHeadwater(request.User, world):
		return allow(rule, ReasonByHeadwater, "")
	}
	verdict := refuse(rule, ReasonMarksChanged, MarksMessage(request.Operation, request.Object()))
	verdict.Changed = changed
	return verdict
}

// marksRule returns a rule that represents all rules of set together, with the
// strictest of their modes. Its name is that of the rule named in the object's
// annotations, if that rule exists.
func marksRule(request Request, set *rules.Set[spec.Rule]) spec.Rule {
	rule := spec.Rule{Config: spec.Config{Mode: MarksMode(set)}}
	for _, marked := range []*object.Full{request.Old, request.New} {
		if marked == nil || rule.Name != "" {
			continue
		}
		if named, found := set.Named(marked.Annotations[mark.Rule]); found {
			rule.Name = named.Name
		}
	}
	return rule
}

// MarksMode returns the strictest mode of all rules in set. The marks of clones
// are protected in this mode. It is Audit for an empty set.
func MarksMode(set *rules.Set[spec.Rule]) spec.Mode {
	mode := spec.Audit
	for _, rule := range set.All() {
		if rule.Mode.Strictness() > mode.Strictness() {
			mode = rule.Mode
		}
	}
	return mode
}

// touchesCloneMarks reports whether the object of the request is marked as a clone,
// see mark.IsMarked, before or after the request, or may be.
func (r Request) touchesCloneMarks() bool {
	if !slices.Contains(object.Kinds, r.Kind) {
		return false
	}
	mayBeMarked := func(full *object.Full) bool { return full == nil || mark.IsMarked(full) }
	switch r.Operation {
	case spec.Create:
		return mayBeMarked(r.New)
	case spec.Update:
		return mayBeMarked(r.Old) || mayBeMarked(r.New)
	default:
		return false
	}
}

// changedMarks returns the fields in which the clone marks differ. before is
// nil for Create.
func changedMarks(before, after *object.Full) []string {
	if before == nil {
		before = &object.Full{}
	}
	var changed []string
	if !sameMarks(before.Labels, after.Labels) {
		changed = append(changed, fieldLabels)
	}
	if !sameMarks(before.Annotations, after.Annotations) {
		changed = append(changed, fieldAnnotations)
	}
	return changed
}
