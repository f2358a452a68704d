package reload

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/rules"
)

// Rule is what this module sees of a rule.
type Rule struct {
	rules.Base
	Config
	workloads labels.Selector
}

// Compile prepares a validated section.
func Compile(base rules.Base, config Config) (Rule, error) {
	selector := labels.Everything()
	if config.Workloads.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(config.Workloads.Selector); err != nil {
			return Rule{}, fmt.Errorf("rule %s: workload selector: %w", base.Name, err)
		}
	}
	return Rule{Base: base, Config: config, workloads: selector}, nil
}

// pace is the one that the rule sets for each workload.
func (r Rule) pace() Pace { return newPace(r.MinInterval, r.MaxRestartsPerHour) }
