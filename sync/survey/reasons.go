package survey

import (
	"github.com/headwater-k8s/headwater/sync/plan"
)

// sentences say of each reason that has no message of its own what is so, or is due
// to be done about it.
var sentences = map[plan.Reason]string{
	plan.InSync:             "it is what its source and its rule say",
	plan.Missing:            "there is no clone yet; it is being made",
	plan.Outdated:           "its source or its rule has changed; it is being written",
	plan.Unmarked:           "it lost its label; it is being put back",
	plan.TakenOver:          "an object of that name was there before; it is being taken over, as the rule says",
	plan.TypeChanged:        "what changed cannot be changed in place; it is being made anew",
	plan.WasImmutable:       "what changed cannot be changed in place; it is being made anew",
	plan.NamespaceUnmatched: "its rule no longer selects this namespace",
	plan.SourceDeleted:      "its source no longer exists",
	plan.RuleRemoved:        "its rule is no longer in the configuration",
	plan.RuleChanged:        "its rule now clones to another name",
	plan.Pruned:             "its rule is no longer in the configuration; it is being deleted, as a person asked",
	plan.Released:           "its rule is no longer in the configuration; its marks are being taken off, as a person asked",
	plan.CloneTerminating:   "it is being deleted",
}

// Why says in a sentence why the clone stands as it does.
func (f CloneStatus) Why() string {
	switch why, known := sentences[f.Decision.Reason]; {
	case f.Decision.Message != "":
		return f.Decision.Message
	case f.Status == Drifting && f.Decision.Reason == plan.Outdated:
		return "somebody changed it; it is being put right"
	case known:
		return why
	default:
		return string(f.Decision.Reason)
	}
}
