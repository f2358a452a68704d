package decide

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// denyingRules returns the rules that refuse changes of the clone that request is
// about, or may be about.
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

// isCloneOf believes the marks: nobody but Headwater sets them while a rule
// protects anything.
func isCloneOf(rule spec.Rule, ref object.Ref, old *object.Full) bool {
	return ref.Kind == rule.Source.Kind && old.Labels[mark.CloneLabel] == "true" && old.Annotations[mark.Rule] == rule.Name
}

// judgeClone judges a request about a clone as one about its source, but lets
// Kubernetes' own controllers, and what is treated like them, delete it: they do where its namespace or its
// owner goes, and an outage must not keep those.
func judgeClone(request Request, rule spec.Rule, world World) Verdict {
	if request.Operation == spec.Delete && request.fault() == "" && isSystem(request.User.Name, world) {
		return allow(rule, ReasonGarbageCollection, request.User.Name)
	}
	rule.Copied = spec.Copied{} // on a clone they may be somebody's own, and drift is healed
	return judge(request, request.Operation, rule, world)
}

// judgeMarks refuses to set, change or remove the marks of a clone to everybody
// but Headwater, so that nobody slips out of sync, and nobody has Headwater
// overwrite or delete what is not its own. On an object without the label,
// before and after, annotations mark nothing.
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

// marksRule stands for the rules together, which guard the marks as
// strictly as the strictest of them protects. It is called as the rule that
// the marks name, if there is one.
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

// touchesCloneMarks reports whether the request is about an object that carries, or will
// carry, the label of clones, or may be.
func (r Request) touchesCloneMarks() bool {
	if !slices.Contains(object.Kinds, r.Kind) {
		return false
	}
	mayHaveLabel := func(full *object.Full) bool {
		if full == nil {
			return true
		}
		_, labelled := full.Labels[mark.CloneLabel]
		return labelled
	}
	switch r.Operation {
	case spec.Create:
		return mayHaveLabel(r.New)
	case spec.Update:
		return mayHaveLabel(r.Old) || mayHaveLabel(r.New)
	default:
		return false
	}
}

// changedMarks names the fields in which the marks differ; before is nil for an
// object that is being created.
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
