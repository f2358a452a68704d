package reported

import (
	"context"
	"fmt"
	"slices"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Approved is what the user approved for a rule.
type Approved struct {
	Rule string `json:"rule,omitempty"`
	// Configuration is the revision of the configuration that may take effect, in place of
	// something of a rule.
	Configuration string `json:"configuration,omitempty"`
	// DryRun is true if nothing was recorded.
	DryRun bool `json:"dryRun,omitempty"`
	// Removals is how many clones may be removed.
	Removals int `json:"removals,omitempty"`
	// Waiting is how many clones that are no longer wanted need not wait.
	Waiting int `json:"waiting,omitempty"`
	// Emptied are the sources whose clones may be emptied.
	Emptied []string `json:"emptied,omitempty"`
}

// waits reports whether clones that are no longer wanted wait to be deleted.
func waits(status rulestatus.Status) bool { return status.Clones != nil && status.Clones.Waiting > 0 }

// Approve records the user's approval of everything of rule that its RuleStatus says is
// held. If nothing is, that is of the removals that wait. With dryRun it records nothing.
func (r *reader) Approve(ctx context.Context, rule string, dryRun bool) (Approved, error) {
	approved, approval := Approved{Rule: rule, DryRun: dryRun}, survey.Approval{By: r.user, Sources: map[string]string{}}
	err := r.whenKnown(ctx, func() error {
		status, err := r.status(ctx, rule)
		switch {
		case err != nil:
			return err
		case status.Held == nil && status.Clones != nil && status.Clones.ByState[string(survey.Held)] > 0:
			return fmt.Errorf("the RuleStatus of rule %q does not say what is held: the Headwater that writes it is older than this command; use the command of its version", rule)
		case status.Held == nil && !waits(status):
			return refusal{fmt.Errorf("nothing of rule %q is held, and no removal waits; see headwater status", rule)}
		}
		if status.Held == nil {
			approved.Waiting, approval.Waiting = status.Clones.Waiting, true
			return nil
		}
		approval.Removals = status.Held.Removals
		for _, source := range status.Held.Emptied {
			approval.Sources[source.Source] = source.Content
			approved.Emptied = append(approved.Emptied, source.Source)
		}
		return nil
	})
	approved.Removals = approval.Removals
	slices.Sort(approved.Emptied)
	if err != nil || dryRun {
		return approved, err
	}
	return approved, r.record(ctx, rule, approval)
}

// ApproveConfiguration records the user's approval of a configuration that is held.
func (r *reader) ApproveConfiguration(ctx context.Context, revision string, dryRun bool) (Approved, error) {
	approved := Approved{Configuration: revision, DryRun: dryRun}
	if !config.IsRevision(revision) {
		return approved, fmt.Errorf("revision %q of a configuration: copy the 16 digits that `headwater status` and the Event RulesHeld show", revision)
	}
	if dryRun {
		return approved, nil
	}
	return approved, r.record(ctx, survey.AboutConfiguration, survey.Approval{By: r.user, Configuration: revision})
}

// record stores approval in place of an earlier one about the same.
func (r *reader) record(ctx context.Context, about string, approval survey.Approval) error {
	approval.At = r.clients.AnsweredAt()
	return survey.PutApproval(ctx, r.clients.Typed, r.own, about, approval)
}

// Table writes a line per approved change.
func (a Approved) Table(out *output.Writer) {
	verb := "approved"
	if a.DryRun {
		verb = "would approve"
	}
	if a.Configuration != "" {
		_, _ = fmt.Fprintf(out, "%s: revision %s of the configuration\n", verb, a.Configuration)
	}
	if a.Removals > 0 {
		_, _ = fmt.Fprintf(out, "%s: removal of %d clones of rule %s\n", verb, a.Removals, a.Rule)
	}
	if a.Waiting > 0 {
		_, _ = fmt.Fprintf(out, "%s: deletion at once of the clones of rule %s that wait for it, %d of them\n", verb, a.Rule, a.Waiting)
	}
	for _, source := range a.Emptied {
		_, _ = fmt.Fprintf(out, "%s: clones of rule %s are emptied like their source %s\n", verb, a.Rule, source)
	}
}
