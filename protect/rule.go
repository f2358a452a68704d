package protect

import (
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Rule is what this module sees of a rule.
type Rule struct {
	rules.Base
	Config
}
