package mark

import "strings"

// setDomain is followed by the name of the rule, which alone may take up all
// that is allowed behind a prefix.
const setDomain = "set." + Domain

// SetBy is the annotation on a custom resource whose fields the rule sets: the
// paths of the fields, joined by commas.
func SetBy(rule string) string { return setDomain + rule }

// FormatFields formats paths as the value of SetBy.
func FormatFields(paths []string) string { return strings.Join(paths, ",") }

// SetFields reads which fields each rule has set from the annotations of a
// custom resource; nil: none.
func SetFields(annotations map[string]string) map[string][]string {
	var fields map[string][]string
	for annotation, value := range annotations {
		rule, found := strings.CutPrefix(annotation, setDomain)
		if !found || value == "" {
			continue
		}
		if fields == nil {
			fields = map[string][]string{}
		}
		fields[rule] = strings.Split(value, ",")
	}
	return fields
}

// TargetManager is the field manager of what the rule sets. Each rule has its
// own, so that a field that it no longer sets is given back.
func TargetManager(rule string) string { return targetManagers + rule }

// RuleOfTargetManager is the inverse of TargetManager; false for another manager.
func RuleOfTargetManager(manager string) (rule string, is bool) {
	return strings.CutPrefix(manager, targetManagers)
}

const targetManagers = FieldManager + "-set-"
