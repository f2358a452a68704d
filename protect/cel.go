package protect

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// The verb override on protectedobjects.headwater.dev, by the name of a rule,
// lets its holder do what the rule refuses.
const (
	overrideVerb     = "override"
	overrideGroup    = "headwater.dev"
	overrideResource = "protectedobjects"
)

// sourceRequest is, in CEL, an operation and the object of a request in the form
// of keyOf. The name comes from oldObject: a request to delete a collection has
// none.
const sourceRequest = `request.operation + " " + request.resource.resource + "/" + request.namespace + "/" + oldObject.metadata.name`

// deletedByKubernetes is whether one of Kubernetes' own controllers deletes.
var deletedByKubernetes = `request.operation == "DELETE" && ` + oneOf("request.userInfo.username", kubernetesControllers)

func not(expression string) string { return "!(" + expression + ")" }

// overridden is whether the requester holds the override permission for this
// rule, or, without one, for every rule.
func overridden(rule string) string {
	if rule == "" {
		return overrideCheck + `.check("` + overrideVerb + `").allowed()`
	}
	return overriddenFor(literal(rule))
}

// overriddenFor is overridden for the rule that this expression names.
func overriddenFor(rule string) string {
	return overrideCheck + ".name(" + rule + `).check("` + overrideVerb + `").allowed()`
}

const overrideCheck = `authorizer.group("` + overrideGroup + `").resource("` + overrideResource + `")`

// isSource is whether the request is a protected one about a source of rule.
func isSource(rule Rule) string {
	if !rule.BySelector() {
		var all []string
		for _, operation := range rule.Operations {
			all = append(all, operation.upper()+" "+keyOf(rule.Source.Ref()))
		}
		return oneOf(sourceRequest, all)
	}
	return fmt.Sprintf(`%s && request.resource.resource == %s && request.namespace == %s && %s`,
		isOperationOf(rule), literal(rule.Source.Kind.Resource()), literal(rule.Source.Namespace), selects(rule.Requirements()))
}

// isClone is whether the request is a protected one about a clone of rule.
func isClone(rule Rule) string {
	return fmt.Sprintf(`%s && request.resource.resource == %s && %s && %s == %s`,
		isOperationOf(rule), literal(rule.Source.Kind.Resource()), labelledClone, ruleOfClone, literal(rule.Name))
}

// isOperationOf is whether the request's operation is one that rule is about.
func isOperationOf(rule Rule) string {
	var all []string
	for _, operation := range rule.Operations {
		all = append(all, operation.upper())
	}
	return oneOf("request.operation", all)
}

const (
	// ruleOfClone is the rule that the marks of the old object name.
	ruleOfClone = `oldObject.metadata.?annotations[?"` + mark.Rule + `"].orValue("")`
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

// blocksDeletion marks an owner that waits for the object to go.
const blocksDeletion = `"blocks"`

// ownersOf lists the owner references of object by value.
func ownersOf(object string) string {
	return object + `.metadata.?ownerReferences.orValue([]).map(owner, [owner.uid, owner.apiVersion, owner.kind, owner.name] + ` +
		`(owner.?controller.orValue(false) ? ["controls"] : []) + (owner.?blockOwnerDeletion.orValue(false) ? [` + blocksDeletion + `] : []))`
}

// selects is, in CEL, whether the labels of the old object fulfil
// requirements.
func selects(requirements labels.Requirements) string {
	var all []string
	for _, requirement := range requirements {
		label := fmt.Sprintf(`oldObject.metadata.?labels[?%s]`, literal(requirement.Key()))
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
