package survey

import (
	"github.com/headwater-k8s/headwater/sync/plan"
)

// sentences explains each reason for which the Decision has no message.
var sentences = map[plan.Reason]string{
	plan.InSync:             "the clone matches its source and its rule",
	plan.Missing:            "the clone does not exist yet; Headwater is creating it",
	plan.Outdated:           "the source or the rule changed; Headwater is updating the clone",
	plan.Unmarked:           "the clone lost its label; Headwater is restoring it",
	plan.TakenOver:          "an object of that name already existed; Headwater is taking it over, as the rule's onConflict says",
	plan.TypeChanged:        "the type of a Secret cannot be changed in place; Headwater is recreating the clone",
	plan.WasImmutable:       "an immutable clone cannot be changed in place; Headwater is recreating it",
	plan.NamespaceUnmatched: "its rule no longer selects this namespace",
	plan.SourceDeleted:      "its source does not exist any more",
	plan.RuleRemoved:        "its rule is no longer in the configuration",
	plan.RuleChanged:        "its rule now clones to another name",
	plan.Pruned:             "its rule is no longer in the configuration; Headwater is deleting the clone, as a user requested",
	plan.Released:           "its rule is no longer in the configuration; Headwater is removing its marks from the clone, as a user requested",
	plan.CloneTerminating:   "the clone is being deleted",
}

// Why explains the status in one sentence.
func (f CloneStatus) Why() string {
	switch why, known := sentences[f.Decision.Reason]; {
	case f.Decision.Message != "":
		return f.Decision.Message
	case f.Status == Drifting && f.Decision.Reason == plan.Outdated:
		return "another client changed the clone; Headwater is repairing it"
	case known:
		return why
	default:
		return string(f.Decision.Reason)
	}
}
