package survey

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/configmap"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

const (
	// ApprovalsName is the ConfigMap in Headwater's own namespace that holds the
	// users' approvals: for each rule name, an Approval in JSON.
	ApprovalsName = "headwater-approvals"
	// AboutConfiguration stands in it in place of a rule's name, for a configuration that
	// is held. No rule can have that name.
	AboutConfiguration = "Configuration"
)

// approvalLasts is how long an approval of removals or leftovers is valid.
const approvalLasts = time.Hour

// Approval is a user's approval of the held changes of one rule.
type Approval struct {
	// At is when the user approved.
	At time.Time `json:"at"`
	// By is the user who approved. It is not verified: a user who may write the
	// ConfigMap can write another name.
	By string `json:"by,omitempty"`
	// Removals is how many clones may be removed.
	Removals int `json:"removals,omitempty"`
	// Waiting is true if the removals that wait are due at once.
	Waiting bool `json:"waiting,omitempty"`
	// Sources are the emptied sources whose clones may become like them, each with the ID
	// of the plan.Lack that was approved.
	Sources map[string]string `json:"sources,omitempty"`
	// Leftovers requests what to do with the clones of a rule that is no longer in
	// the configuration.
	Leftovers *plan.Leftovers `json:"leftovers,omitempty"`
	// Configuration is the revision of a held configuration that may take effect.
	Configuration string `json:"configuration,omitempty"`
}

// Empty reports whether a approves nothing.
func (a Approval) Empty() bool {
	return a.Removals == 0 && !a.Waiting && len(a.Sources) == 0 && a.Leftovers == nil && a.Configuration == ""
}

// Equal reports whether a and b approve the same.
func (a Approval) Equal(b Approval) bool {
	return a.Removals == b.Removals && a.Waiting == b.Waiting && a.Leftovers == b.Leftovers && a.Configuration == b.Configuration && maps.Equal(a.Sources, b.Sources)
}

// IsUsedUpByRemovals reports whether the deletion of a clone may use up a.
func (a Approval) IsUsedUpByRemovals() bool { return a.Removals > 0 || a.Leftovers != nil }

// String says when a was given and which user gave it, for Events.
func (a Approval) String() string {
	if a.By == "" {
		return fmt.Sprintf("approved at %s by an unnamed user", a.At.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("approved at %s by user %.256q (name not verified)", a.At.UTC().Format(time.RFC3339), a.By)
}

// StoredApproval is an Approval and the requests about deliveries that an earlier release
// stored with it.
type StoredApproval struct {
	Approval

	Deliveries json.RawMessage `json:"deliveries"`
}

// StoredApprovals is the cached content of the approvals ConfigMap.
type StoredApprovals = Recorded[StoredApproval]

// approvals reads the approvals ConfigMap from a cache.
type approvals struct {
	*records[StoredApproval]

	now func() time.Time
}

// Of returns the valid approval for rule; empty if there is none.
func (a *approvals) Of(rule string) Approval { return a.All()[rule].at(a.now()) }

// at returns what is left of a at a time. One that is dated later than now would last for
// as long as somebody likes.
func (a Approval) at(now time.Time) Approval {
	if now.Sub(a.At).Abs() > approvalLasts {
		a.Removals, a.Waiting, a.Leftovers, a.Configuration = 0, false, nil, ""
	}
	return a
}

// ApprovedConfiguration returns the approval of a configuration, as the API server holds
// it; empty if there is none.
func ApprovedConfiguration(ctx context.Context, client kubernetes.Interface, ownNamespace string) (Approval, error) {
	stored, err := configmap.Store{Client: client, Namespace: ownNamespace, Name: ApprovalsName}.Read(ctx)
	if err != nil {
		return Approval{}, err
	}
	var approval Approval
	if text := stored[AboutConfiguration]; text != "" && decodeJSON(text, &approval) != nil {
		return Approval{}, nil //nolint:nilerr // it approves nothing
	}
	return approval.at(time.Now()), nil
}

// ChangeApproval applies change to the approval of rule that the API server holds; see
// changeEntry.
func ChangeApproval(ctx context.Context, client kubernetes.Interface, ownNamespace, rule string, change func(Approval) Approval) error {
	return changeEntry(ctx, client, ownNamespace, ApprovalsName, rule, change)
}

// PutApproval stores approval in place of an earlier one of rule, of which only what it says of
// other sources stays, and of removals that are not carried out yet if approval does not.
func PutApproval(ctx context.Context, client kubernetes.Interface, ownNamespace, rule string, approval Approval) error {
	return ChangeApproval(ctx, client, ownNamespace, rule, func(stored Approval) Approval {
		merged := approval
		merged.Sources = object.Merged(stored.Sources, approval.Sources)
		if merged.Removals == 0 {
			merged.Removals = stored.at(approval.At).Removals
		}
		return merged
	})
}
