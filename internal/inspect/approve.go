package inspect

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/sync/survey"
)

// Approved is what the user approved for a rule.
type Approved struct {
	Rule string `json:"rule"`
	// DryRun is true if nothing was recorded.
	DryRun bool `json:"dryRun,omitempty"`
	// Removals is how many clones may be removed.
	Removals int `json:"removals,omitempty"`
	// Emptied are the sources whose clones may be emptied.
	Emptied []string `json:"emptied,omitempty"`
}

// Approve records the user's approval of everything that is held of rule now. With
// dryRun it records nothing.
func (i *Inspector) Approve(ctx context.Context, rule string, dryRun bool) (Approved, error) {
	approval := i.reader.Approvable(rule, i.maxFraction(), time.Now())
	if approval.Empty() {
		return Approved{}, i.notHeld(rule)
	}
	approval.By = i.user
	approved := Approved{Rule: rule, DryRun: dryRun, Removals: approval.Removals, Emptied: slices.Sorted(maps.Keys(approval.Sources))}
	if dryRun {
		return approved, nil
	}
	return approved, survey.SetApproval(ctx, i.clients.Typed, i.options.Namespace, rule, approval)
}

func (i *Inspector) notHeld(rule string) error {
	if _, found := i.rules.Named(rule); !found {
		return fmt.Errorf("no rule %q clones anything; those that do: %s", rule, namesOf(i.rules))
	}
	return fmt.Errorf("nothing of rule %q is held; see headwater status", rule)
}

// Table writes a line per approved change.
func (a Approved) Table(out io.Writer) {
	verb := "approved"
	if a.DryRun {
		verb = "would approve"
	}
	if a.Removals > 0 {
		_, _ = fmt.Fprintf(out, "%s: removal of %d clones of rule %s\n", verb, a.Removals, a.Rule)
	}
	for _, source := range a.Emptied {
		_, _ = fmt.Fprintf(out, "%s: clones of rule %s are emptied like their source %s\n", verb, a.Rule, source)
	}
}
