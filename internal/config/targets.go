package config

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/reload/kinds"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
)

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
