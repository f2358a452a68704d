package config

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/notify"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/manifests"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/reload/kinds"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// checkMeaning reports what the schema cannot know. It is silent about keys
// that are faulty already.
func checkMeaning(doc *document, config *Config) {
	var errs field.ErrorList
	for i, rule := range config.Rules {
		errs = append(errs, rule.validate(field.NewPath("rules").Index(i))...)
	}
	errs = append(errs, checkNames(doc, config.Rules)...)
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
	if r.Reload != nil || r.Sync.Delivery == nil || r.Sync.Delivery.Gate.Consumers == syncspec.GateNone {
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
