package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/notify"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/protect/manifests"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/reload/kinds"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
)

// maxPatterns limits the length of all regular expressions of a file. Compiling one
// takes up to 30 µs for each byte, and happens at each review of the file.
const maxPatterns = 16 << 10

// checkMeaning reports what the schema cannot know. It is silent about keys
// that are faulty already.
func checkMeaning(doc *document, config *Config) {
	var errs field.ErrorList
	patterns := 0
	for i, rule := range config.Rules {
		if patterns += rule.Validate.PatternBytes(); patterns > maxPatterns {
			at := field.NewPath("rules").Index(i).Child("validate").String()
			doc.cut(doc.line(at), at, fmt.Sprintf("the regular expressions of this and the rules before it have more than %d bytes; shorten them", maxPatterns))
			return
		}
		errs = append(errs, rule.validate(field.NewPath("rules").Index(i))...)
	}
	errs = append(errs, checkNames(doc, config.Rules)...)
	errs = append(errs, checkRemoved(config)...)
	errs = append(errs, checkProtectedOnce(doc, config.Rules)...)
	errs = append(errs, checkTargets(doc, config)...)
	errs = append(errs, config.Protect.Validate(field.NewPath("protect"))...)
	errs = append(errs, config.Reload.Validate(field.NewPath("reload"))...)
	errs = append(errs, config.Safety.Validate(field.NewPath("safety"))...)
	errs = append(errs, notify.ValidateAll(field.NewPath("notify"), config.Notify)...)
	for _, err := range errs {
		if !doc.doubtful(err.Field) {
			doc.report(doc.line(err.Field), err.Field, plain(err))
		}
	}
}

func (r Rule) validate(at *field.Path) field.ErrorList {
	errs := r.Source.Validate(at.Child("source"))
	errs = append(errs, r.validateChecks(at.Child("validate"))...)
	if r.Sync == nil && r.Protect == nil && r.Reload == nil {
		errs = append(errs, field.Forbidden(at, "does nothing; add sync: {}, protect: {} or reload: {}"))
	}
	if r.Sync != nil {
		errs = append(errs, r.Sync.Validate(at.Child("sync"))...)
		if r.Source.Selector != nil && r.Sync.Target.Name != "" {
			errs = append(errs, field.Forbidden(at.Child("sync", "target", "name"),
				"would give the clones of all selected sources one name; remove it"))
		}
		errs = append(errs, r.validateGate(at.Child("sync", "delivery", "gate", "consumers"))...)
	}
	if r.Protect != nil {
		errs = append(errs, r.Protect.Validate(at.Child("protect"))...)
		errs = append(errs, manifests.CheckSelector(at.Child("source"), r.Source)...)
		if r.Protect.Clones == protectspec.Deny && r.Sync == nil {
			errs = append(errs, field.Forbidden(at.Child("protect", "clones"), "the rule makes no clones; add sync: {}, or remove it"))
		}
	}
	if r.Reload != nil {
		errs = append(errs, r.Reload.Validate(at.Child("reload"))...)
		errs = append(errs, r.Reload.ValidateSource(at.Child("reload"), r.Source)...)
	}
	return errs
}

func (r Rule) validateChecks(at *field.Path) field.ErrorList {
	if len(r.Validate) > 0 && r.Sync == nil && r.Protect == nil {
		return field.ErrorList{field.Forbidden(at, "has no effect without sync or protect; add one of them, or remove it")}
	}
	return r.Validate.Validate(at)
}

// validateGate reports a delivery that waits for consumers that nobody looks at.
func (r Rule) validateGate(at *field.Path) field.ErrorList {
	if r.Reload != nil || r.Sync.Delivery == nil || r.Sync.Delivery.Gate.Consumers == stages.GateNone {
		return nil
	}
	return field.ErrorList{field.Forbidden(at, "nobody looks at consumers without a reload section; add reload: {}, or write None")}
}

func checkNames(doc *document, rules []Rule) field.ErrorList {
	var errs field.ErrorList
	first := map[string]string{}
	for i, rule := range rules {
		at := field.NewPath("rules").Index(i).Child("name")
		if rule.Name == "" {
			continue
		}
		if taken, ok := first[rule.Name]; ok {
			errs = append(errs, field.Forbidden(at,
				fmt.Sprintf("%q is the name of the rule in line %d already; choose another", rule.Name, doc.line(taken))))
			continue
		}
		first[rule.Name] = at.String()
	}
	return errs
}

// checkRemoved reports a rule that is said to be removed. Names that never were a rule's
// do no harm: they are of rules that were removed before.
func checkRemoved(config *Config) field.ErrorList {
	var errs field.ErrorList
	for i, name := range config.RemovedRules {
		if slices.ContainsFunc(config.Rules, func(rule Rule) bool { return rule.Name == name }) {
			errs = append(errs, field.Forbidden(field.NewPath("removedRules").Index(i), "is the name of a rule of this file; remove it here, or remove the rule"))
		}
	}
	return errs
}

func checkProtectedOnce(doc *document, rules []Rule) field.ErrorList {
	var errs field.ErrorList
	first := map[object.Ref]int{}
	for i, rule := range rules {
		ref := rule.Source.Ref()
		if rule.Protect == nil || ref.Name == "" {
			continue
		}
		at := field.NewPath("rules").Index(i).Child("protect")
		if by, ok := first[ref]; ok {
			other := field.NewPath("rules").Index(by).Child("protect").String()
			errs = append(errs, field.Forbidden(at,
				fmt.Sprintf("%s is protected by rule %s already, in line %d; remove one of them", ref, rules[by].Name, doc.line(other))))
			continue
		}
		first[ref] = i
	}
	return errs
}

// plain words err without the jargon of API errors.
func plain(err *field.Error) string {
	if err.Type == field.ErrorTypeDuplicate {
		return fmt.Sprintf("%s is given twice; remove one", show(err.BadValue))
	}
	// What follows is a regular expression for those who would rather read
	// that.
	detail, _, _ := strings.Cut(err.Detail, " (e.g. ")
	if value, ok := err.BadValue.(string); ok && value != "" && err.Type == field.ErrorTypeInvalid {
		return fmt.Sprintf("%s cannot be used: %s", show(value), detail)
	}
	return detail
}

// checkTargets reports what the targets of several rules, and the declared
// workloads, would dispute about.
func checkTargets(doc *document, config *Config) field.ErrorList {
	var errs field.ErrorList
	workloads := map[kinds.Kind]bool{}
	for _, declared := range config.Reload.Workloads {
		workloads[declared.ConsumerKind()] = true
	}
	forced := map[string]*field.Path{}
	for i, rule := range config.Rules {
		if rule.Reload == nil {
			continue
		}
		for j, target := range rule.Reload.Targets {
			at := field.NewPath("rules").Index(i).Child("reload", "targets").Index(j)
			if workloads[target.ConsumerKind()] {
				errs = append(errs, field.Forbidden(at,
					fmt.Sprintf("%s is under reload.workloads, and restarted for what it reads; remove one of them", target.Kind)))
			}
			errs = append(errs, forcedOnce(doc, forced, at, target)...)
		}
	}
	return errs
}

// forcedOnce refuses that two rules take one field from each other for ever.
func forcedOnce(doc *document, forced map[string]*field.Path, at *field.Path, target reloadspec.Target) field.ErrorList {
	var errs field.ErrorList
	for i, set := range target.Set {
		if !target.Force {
			break
		}
		at := at.Child("set").Index(i).Child("to")
		id := string(target.ConsumerKind()) + " " + strings.TrimPrefix(set.To, ".")
		if other, taken := forced[id]; taken {
			errs = append(errs, field.Forbidden(at,
				fmt.Sprintf("is forced by the rule in line %d already; remove force from one of them", doc.line(other.String()))))
			continue
		}
		forced[id] = at
	}
	return errs
}

const (
	secretSource = "Headwater runs without permissions on Secrets (rbac.secrets: false in the chart's values), so a rule cannot have a Secret as its source"
	secretOptIn  = "Headwater runs without permissions on Secrets (rbac.secrets: false in the chart's values), so it cannot follow the Secrets that workload owners name; set reload.optIn to false"
	secretScope  = "Headwater runs without permissions on Secrets (rbac.secrets: false in the chart's values), so it cannot follow those that workloads of these namespaces consume; remove reload.namespaces"
)

// secretUses returns what of config needs Secrets outside Headwater's own namespace.
func secretUses(doc *document, config *Config) (uses Problems) {
	add := func(at *field.Path, message string) {
		uses = append(uses, Problem{File: doc.file, Line: doc.line(at.String()), Path: at.String(), Message: message})
	}
	for i, rule := range config.Rules {
		if rule.Source.Kind == object.Secret {
			add(field.NewPath("rules").Index(i).Child("source", "kind"), secretSource)
		}
	}
	if config.Reload.OptsIn() {
		add(field.NewPath("reload", "optIn"), secretOptIn)
	}
	if len(config.Reload.Namespaces) > 0 {
		add(field.NewPath("reload", "namespaces"), secretScope)
	}
	return uses
}

// WithoutSecrets returns Problems if c needs Secrets outside Headwater's own namespace.
func (c *Config) WithoutSecrets() error {
	if len(c.SecretUses) == 0 {
		return nil
	}
	return c.SecretUses
}
