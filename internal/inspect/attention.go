package inspect

import (
	"fmt"

	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// attention lists everything that needs attention: the reasons for which the status
// command exits 2, and for which its flag --wait waits. Retained clones need none.
func (s Status) attention() []string {
	var all []string
	if s.Leader.noLeader() {
		all = append(all, "no replica leads")
	}
	for _, namespace := range s.MissingNamespaces {
		all = append(all, fmt.Sprintf("namespace %s does not exist", namespace))
	}
	for _, rule := range s.Rules {
		if rule.Missing != "" {
			all = append(all, fmt.Sprintf("rule %s: %s", rule.Name, rule.Missing))
		}
		for _, status := range survey.Statuses {
			if count := rule.Clones[status]; count > 0 && !status.IsFine() {
				all = append(all, fmt.Sprintf("rule %s: %s %s (%s)", rule.Name, plural.Of(count, "clone"), statusText(status), rule.first(status)))
			}
		}
	}
	for _, p := range s.Protection {
		if p.Proven != nil && !*p.Proven {
			all = append(all, fmt.Sprintf("rule %s: protection is not proven: %s", p.Rule, p.Why))
		}
	}
	return all
}

// statusText is the status after a number of clones: "3 clones in conflict".
func statusText(status survey.Status) string {
	if status == survey.Conflicting {
		return "in conflict"
	}
	return string(status)
}

// first names the first problems with this status.
func (r *RuleStatus) first(status survey.Status) string {
	var of []Problem
	for _, problem := range r.Problems {
		if problem.Status == status {
			of = append(of, problem)
		}
	}
	return problemNames(of)
}
