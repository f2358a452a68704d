package reported

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

// History lists the recorded revisions of a rule's sources.
type History struct {
	inspect.Confirmation

	Rule    string                     `json:"rule"`
	Sources []rulestatus.SourceHistory `json:"sources"`
	// MoreSources counts the sources that the RuleStatus leaves out.
	MoreSources int `json:"moreSources,omitempty"`
}

// History returns the revisions of rule. source limits it to the source of that name; empty
// means all.
func (r *reader) History(ctx context.Context, rule, source string) (History, error) {
	recorded, _, err := r.recorded(ctx, rule, source)
	if err != nil {
		return History{}, err
	}
	return History{inspect.ReadConfirmation(ctx, r.clients, r.own), rule, recorded.Sources, recorded.MoreSources}, nil
}

// recorded returns the sources of rule that have revisions, and whether it is suspended.
func (r *reader) recorded(ctx context.Context, rule, source string) (history *rulestatus.History, suspended bool, err error) {
	status, err := r.status(ctx, rule)
	if err != nil {
		return nil, false, err
	}
	history, err = selected(status, rule, source)
	return history, status.Condition(rulestatus.Suspended) != nil, err
}

// selected returns what status, that of rule, says of the source of that name, or of all.
func selected(status rulestatus.Status, rule, source string) (*rulestatus.History, error) {
	history := status.History
	switch {
	case history == nil && status.Removed:
		return nil, fmt.Errorf("rule %q is not in the configuration, and no revision of it is kept", rule)
	case history == nil:
		return nil, fmt.Errorf("the RuleStatus of rule %q has no history: the Headwater that writes it is older than this command; use the command of its version", rule)
	case len(history.Sources) == 0 && history.Kept == 0:
		return nil, fmt.Errorf("rule %q keeps no revisions; set sync.history or sync.delivery", rule)
	case len(history.Sources) == 0:
		return nil, refusal{fmt.Errorf("no revision of rule %q is recorded yet; does its source exist, and does a replica lead? See headwater status", rule)}
	case source == "":
		return history, nil
	}
	history.Sources = slices.DeleteFunc(history.Sources, func(one rulestatus.SourceHistory) bool { return nameOf(one) != source })
	if len(history.Sources) == 0 {
		text := fmt.Sprintf("rule %q has no revision of a source named %q", rule, source)
		if history.MoreSources > 0 {
			text += fmt.Sprintf(", or it is one of the %d that the RuleStatus leaves out", history.MoreSources)
		}
		return nil, refusal{errors.New(text)}
	}
	history.MoreSources = 0
	return history, nil
}

// nameOf returns the name of a source.
func nameOf(source rulestatus.SourceHistory) string {
	ref, err := object.ParseRef(source.Source)
	if err != nil {
		return source.Source
	}
	return ref.Name
}

// Table writes a line per revision.
func (h History) Table(out *output.Writer) {
	h.Confirmation.Table(out)
	var rows [][]string
	var more []string
	for _, source := range h.Sources {
		for _, revision := range source.Revisions {
			rows = append(rows, historyRow(source.Source, revision))
		}
		if source.MoreRevisions > 0 {
			more = append(more, fmt.Sprintf("%s of %s", plural.Of(source.MoreRevisions, "older revision"), source.Source))
		}
	}
	out.Rows(rows, []string{"SOURCE", "REVISION", "AGE", "BY", "VERDICT", "STAGE", "CLONES", "REASON"}, "EVIDENCE")
	if h.MoreSources > 0 {
		more = append(more, plural.Of(h.MoreSources, "source"))
	}
	if len(more) > 0 {
		_, _ = fmt.Fprintf(out, "\nnot listed: %s\n", strings.Join(more, ", "))
	}
}

func historyRow(source string, r rulestatus.Revision) []string {
	reason := r.Reason
	for _, asked := range []struct{ what, by string }{{"rolled back to it ", r.Pinned}, {"paused ", r.Paused}} {
		if asked.by != "" {
			reason = strings.TrimPrefix(reason+"; "+asked.what+asked.by, "; ")
		}
	}
	evidence := none
	if e := r.Evidence; e != nil {
		evidence = fmt.Sprintf("%d ran it, %d refreshed, %d waiting, %d failing, %d idle, %d excused",
			e.Ran, e.Refreshed, e.Waiting, e.Failing, e.Idle, e.Excused)
	}
	return []string{
		source, strconv.Itoa(r.Number), duration.HumanDuration(time.Since(r.Recorded.Time)), cmp.Or(r.EditedBy, none),
		string(r.Verdict), cmp.Or(r.Stage, none), strconv.Itoa(r.Clones), reason, evidence,
	}
}
