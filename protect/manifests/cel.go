package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/headwater-k8s/headwater/internal/carry"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// nameOfObject is, in CEL, the name of the object as it is, or as it is made: a
// request to delete a collection has none.
const nameOfObject = `(oldObject == null ? object : oldObject).metadata.name`

// sourceRequest is, in CEL, an operation and the object of a request in the form
// of keyOf.
const sourceRequest = `request.operation + " " + request.resource.resource + "/" + request.namespace + "/" + ` + nameOfObject

// deletedByKubernetes is whether one of Kubernetes' own controllers deletes.
var deletedByKubernetes = `request.operation == "DELETE" && ` + oneOf("request.userInfo.username", decide.KubernetesControllers)

func not(expression string) string { return "!(" + expression + ")" }

// overridden is whether the requester holds the override permission for this
// rule, or, without one, for every rule.
func overridden(rule string) string {
	if rule == "" {
		return overrideCheck + `.check("` + spec.OverrideVerb + `").allowed()`
	}
	return overriddenFor(literal(rule))
}

// overriddenFor is overridden for the rule that this expression names.
func overriddenFor(rule string) string {
	return overrideCheck + ".name(" + rule + `).check("` + spec.OverrideVerb + `").allowed()`
}

const overrideCheck = `authorizer.group("` + spec.OverrideGroup + `").resource("` + spec.OverrideResource + `")`

// isSource is whether the request is a protected one about a source of rule.
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

// isSelected is whether the request is a protected one about an object that rule
// selects, before the request or after it.
func isSelected(rule spec.Rule) string {
	before := oneOf("request.operation", upper(rule.Operations))
	if rule.Covers(spec.Update) && rule.OnlyDeletionCounts(spec.Update) {
		before += ` || request.operation == "UPDATE" && (!(selected[1]) || ` + ownersDiffer + ")"
	}
	return fmt.Sprintf(`[[oldObject, object].map(it, it != null && %s)].exists(selected, selected[0] ? %s : selected[1] && %t)`,
		selects("it", rule.Requirements()), before, rule.Protects(spec.Create))
}

// becomesSource is whether a protected request about a source of rule makes it one.
func becomesSource(rule spec.Rule) string {
	if !rule.BySelector() {
		return "oldObject == null"
	}
	return "oldObject == null || " + not(selects("oldObject", rule.Requirements()))
}

// isClone is whether the request is a protected one about a clone of rule.
func isClone(rule spec.Rule) string {
	return fmt.Sprintf(`%s && request.resource.resource == %s && %s && %s == %s`,
		oneOf("request.operation", upper(rule.CoveredOfClones())), literal(rule.Source.Kind.Resource()), labelledClone, ruleOfClone, literal(rule.Name))
}

func upper(operations []spec.Operation) []string {
	var all []string
	for _, operation := range operations {
		all = append(all, operation.Upper())
	}
	return all
}

const (
	// ruleOfClone is the rule that the marks of the old object name.
	ruleOfClone = `oldObject.metadata.?annotations[?"` + mark.Rule + `"].orValue("")`
	// cloneRequest is an operation, and resource and that rule of a clone.
	cloneRequest = `request.operation + " " + request.resource.resource + "/" + ` + ruleOfClone
	// labelledClone is whether the old object is a clone by its label.
	labelledClone = `oldObject.metadata.?labels[?"` + mark.CloneLabel + `"].orValue("") == "true"`
)

// sameContent is whether old and new object have the same content, marks and,
// at most, fewer finalizers.
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

// keepsCopied is whether old and new object have the same of what globs copy to
// clones, out of this map of their metadata. Few keys differ, so few are matched.
func keepsCopied(field string, globs []string) string {
	return fmt.Sprintf(`[object.metadata, oldObject.metadata].all(meta, meta.?%[1]s.orValue({}).all(key, `+
		`object.metadata.?%[1]s[?key] == oldObject.metadata.?%[1]s[?key] || !key.replace("/", %[2]s).matches(%[3]s) || key.matches(%[4]s)))`,
		field, literal(carry.Slash), literal(carry.Pattern(globs)), literal(carry.NeverPattern()))
}

// blocksDeletion marks an owner that waits for the object to go.
const blocksDeletion = `"blocks"`

// ownersDiffer is, in CEL, whether old and new object have other owners, or have
// them in another order.
var ownersDiffer = ownersOf("object") + " != " + ownersOf("oldObject")

// ownersOf lists the owner references of object by value.
func ownersOf(object string) string {
	return object + `.metadata.?ownerReferences.orValue([]).map(owner, [owner.uid, owner.apiVersion, owner.kind, owner.name] + ` +
		`(owner.?controller.orValue(false) ? ["controls"] : []) + (owner.?blockOwnerDeletion.orValue(false) ? [` + blocksDeletion + `] : []))`
}

// selects is, in CEL, whether the labels of object fulfil requirements.
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

// marksDiffer is, in CEL, whether the old and the new object differ in a key of
// ours in this map of their metadata.
func marksDiffer(field string) string {
	const old = `(oldObject == null ? {} : oldObject.metadata)`
	return fmt.Sprintf(`[object.metadata, %[1]s].exists(meta, meta.?%[2]s.orValue({}).exists(key, `+
		`key.startsWith(%[3]s) && object.metadata.?%[2]s[?key] != %[1]s.?%[2]s[?key]))`, old, field, literal(mark.Domain))
}

// literal is s as a CEL string literal. CEL knows every escape sequence that
// Go produces for valid UTF-8.
func literal(s string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(s, "\uFFFD")) }

// list is values as a CEL list.
func list(values []string) string {
	var all []string
	for _, value := range values {
		all = append(all, literal(value))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// oneOf is whether expression is one of values.
func oneOf(expression string, values []string) string { return expression + " in " + list(values) }
