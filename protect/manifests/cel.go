package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/propagation"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// nameOfObject is the CEL expression for the name of the current object, or of
// the new one for CREATE. request.name is not used, because it is empty for
// deletecollection.
const nameOfObject = `(oldObject == null ? object : oldObject).metadata.name`

// sourceRequest is the CEL expression for the operation and the object of a
// request. The object has the form of keyOf.
const sourceRequest = `request.operation + " " + request.resource.resource + "/" + request.namespace + "/" + ` + nameOfObject

// deletedByKubernetes is true if one of Kubernetes' own controllers deletes the
// object.
var deletedByKubernetes = `request.operation == "DELETE" && ` + isSystem(decide.KubernetesControllers)

// notImpersonated is false if somebody else acts as a service account: such a request
// has no UID.
const notImpersonated = `(!request.userInfo.username.startsWith("system:serviceaccount:") || request.userInfo.?uid.orValue("") != "")`

func not(expression string) string { return "!(" + expression + ")" }

// overridden returns CEL that is true if the requester holds the override
// permission for rule. If rule is "", it checks the permission for every rule.
func overridden(rule string) string {
	if rule == "" {
		return overrideCheck + `.check("` + spec.OverrideVerb + `").allowed()`
	}
	return overriddenFor(literal(rule))
}

// overriddenFor is like overridden, but rule is a CEL expression for the rule's
// name.
func overriddenFor(rule string) string {
	return overrideCheck + ".name(" + rule + `).check("` + spec.OverrideVerb + `").allowed()`
}

const overrideCheck = `authorizer.group("` + spec.OverrideGroup + `").resource("` + spec.OverrideResource + `")`

// isSource returns CEL that is true if the request is about a source of rule
// and the rule covers its operation.
func isSource(rule spec.Rule) string {
	if !rule.BySelector() {
		var all []string
		for _, operation := range rule.Covered() {
			all = append(all, operation.Upper()+" "+keyOf(rule.Source.Ref()))
		}
		return oneOf(sourceRequest, all)
	}
	return fmt.Sprintf(`request.resource.resource == %s && request.namespace == %s && %s`,
		literal(rule.Source.Kind.Resource()), literal(rule.Source.Namespace), isSelected(rule))
}

// isSelected returns CEL that is true if rule selects the object before or
// after the request and covers its operation.
func isSelected(rule spec.Rule) string {
	before := oneOf("request.operation", upper(rule.Operations))
	if rule.Covers(spec.Update) && rule.OnlyDeletionCounts(spec.Update) {
		before += ` || request.operation == "UPDATE" && (!(selected[1]) || ` + ownersDiffer + ")"
	}
	return fmt.Sprintf(`[[oldObject, object].map(it, it != null && %s)].exists(selected, selected[0] ? %s : selected[1] && %t)`,
		selects("it", rule.Requirements()), before, rule.Protects(spec.Create))
}

// becomesSource returns CEL that is true if the request, which is about a
// source of rule, makes the object a source.
func becomesSource(rule spec.Rule) string {
	if !rule.BySelector() {
		return "oldObject == null"
	}
	return "oldObject == null || " + not(selects("oldObject", rule.Requirements()))
}

// marked returns CEL that is true if object is marked as a clone, like mark.IsMarked.
func marked(object string) string {
	return fmt.Sprintf(`%[1]s.metadata.?labels[?%[2]s].orValue("") == "true" && [%[3]s, %[4]s].all(key, %[1]s.metadata.?annotations[?key].orValue("") != "") && `+
		`%[1]s.metadata.?annotations[?%[5]s].optMap(target, target == %[1]s.metadata.?namespace.orValue("") + "/" + %[1]s.metadata.?name.orValue("")).orValue(true)`,
		object, literal(mark.CloneLabel), literal(mark.Rule), literal(mark.Source), literal(mark.Target))
}

// marksChange is true if the request changes marks of an object that is marked as a clone
// before or after it.
var marksChange = "[oldObject, object].exists(it, it != null && " + marked("it") + ") && (" + marksDiffer("labels") + " || " + marksDiffer("annotations") + ")"

// isClone returns CEL that is true if the request is about a clone of rule and
// the rule covers its operation.
func isClone(rule spec.Rule) string {
	return fmt.Sprintf(`%s && request.resource.resource == %s && %s && %s == %s`,
		oneOf("request.operation", upper(rule.CoveredOfClones())), literal(rule.Source.Kind.Resource()), markedBefore, ruleOfClone, literal(rule.Name))
}

func upper(operations []spec.Operation) []string {
	var all []string
	for _, operation := range operations {
		all = append(all, operation.Upper())
	}
	return all
}

const (
	// ruleOfClone is the rule named in the annotations of the old object.
	ruleOfClone = `oldObject.metadata.?annotations[?"` + mark.Rule + `"].orValue("")`
	// cloneRequest is the operation, the resource and ruleOfClone in one
	// string.
	cloneRequest = `request.operation + " " + request.resource.resource + "/" + ` + ruleOfClone
)

// markedBefore is true if the old object is marked as a clone.
var markedBefore = marked("oldObject")

// sameContent returns CEL that is true if the update changes neither the
// content nor Headwater's labels and annotations, and adds no finalizer.
func sameContent() string {
	var same []string
	for _, field := range []string{"data", "binaryData"} {
		same = append(same, fmt.Sprintf("object.?%[1]s.orValue({}) == oldObject.?%[1]s.orValue({})", field))
	}
	return strings.Join(append(same,
		`object.?type.orValue("") == oldObject.?type.orValue("")`,
		`object.?immutable.orValue(false) == oldObject.?immutable.orValue(false)`,
		not(marksDiffer("labels")), not(marksDiffer("annotations")),
		`object.metadata.?finalizers.orValue([]).all(finalizer, finalizer in oldObject.metadata.?finalizers.orValue([]))`,
	), " && ")
}

// keepsCopied returns CEL that is true if the update changes no key of field,
// labels or annotations, that matches globs. It compares values first and
// matches patterns last, because few keys differ.
func keepsCopied(field string, globs []string) string {
	return fmt.Sprintf(`[object.metadata, oldObject.metadata].all(meta, meta.?%[1]s.orValue({}).all(key, `+
		`object.metadata.?%[1]s[?key] == oldObject.metadata.?%[1]s[?key] || !key.replace("/", %[2]s).matches(%[3]s) || key.matches(%[4]s)))`,
		field, literal(propagation.Slash), literal(propagation.Pattern(globs)), literal(propagation.ForbiddenPattern()))
}

// blocksDeletion represents blockOwnerDeletion in the lists of ownersOf.
const blocksDeletion = `"blocks"`

// ownersDiffer is true if the owner references differ, or their order does.
var ownersDiffer = ownersOf("object") + " != " + ownersOf("oldObject")

// ownersOf returns CEL for the list of owner references of object, each as a
// list of its values.
func ownersOf(object string) string {
	return object + `.metadata.?ownerReferences.orValue([]).map(owner, [owner.uid, owner.apiVersion, owner.kind, owner.name] + ` +
		`(owner.?controller.orValue(false) ? ["controls"] : []) + (owner.?blockOwnerDeletion.orValue(false) ? [` + blocksDeletion + `] : []))`
}

// selects returns CEL that is true if the labels of object match requirements.
func selects(object string, requirements labels.Requirements) string {
	var all []string
	for _, requirement := range requirements {
		label := fmt.Sprintf(`%s.metadata.?labels[?%s]`, object, literal(requirement.Key()))
		isOne := fmt.Sprintf(`%s.optMap(value, %s).orValue(false)`, label, oneOf("value", slices.Sorted(maps.Keys(requirement.Values()))))
		switch requirement.Operator() {
		case selection.Exists:
			all = append(all, label+".hasValue()")
		case selection.DoesNotExist:
			all = append(all, "!"+label+".hasValue()")
		case selection.NotIn, selection.NotEquals:
			all = append(all, "!"+isOne)
		default:
			all = append(all, isOne)
		}
	}
	return strings.Join(all, " && ")
}

// marksDiffer returns CEL that is true if the old and new object differ in a
// headwater.dev/ key of field, which is labels or annotations.
func marksDiffer(field string) string {
	const old = `(oldObject == null ? {} : oldObject.metadata)`
	return fmt.Sprintf(`[object.metadata, %[1]s].exists(meta, meta.?%[2]s.orValue({}).exists(key, `+
		`key.startsWith(%[3]s) && object.metadata.?%[2]s[?key] != %[1]s.?%[2]s[?key]))`, old, field, literal(mark.Domain))
}

// literal returns s as a CEL string literal. CEL supports every escape sequence
// that Go produces for valid UTF-8.
func literal(s string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(s, "\uFFFD")) }

// list returns values as a CEL list.
func list(values []string) string {
	var all []string
	for _, value := range values {
		all = append(all, literal(value))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// oneOf returns CEL that is true if expression is one of values.
func oneOf(expression string, values []string) string { return expression + " in " + list(values) }
