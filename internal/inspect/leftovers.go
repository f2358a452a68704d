package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Leftovers lists the clones of a rule that no rule wants, and what to do with them: all of a
// rule that is no longer in the configuration, else those that do not name their place.
type Leftovers struct {
	Rule string            `json:"rule"`
	Fate plan.LeftoverFate `json:"fate"`
	// DryRun is true if nothing was recorded.
	DryRun bool `json:"dryRun,omitempty"`
	// Clones are the affected clones, as Kind/namespace/name.
	Clones []string `json:"clones"`
	// AsOf identifies the versions of the clones; see parseAsOf.
	AsOf string `json:"asOf"`
	// Skipped are the clones that changed since an earlier AsOf.
	Skipped []string `json:"skipped,omitempty"`

	bound   *plan.Leftovers
	inForce bool
}

// Leftovers returns the clones of rule to which fate applies. asOf is empty or the
// AsOf of an earlier dry run, which excludes clones that changed since. Leftovers
// fails if no clone is left, or only clones that the configuration decides about.
func (i *Inspector) Leftovers(rule string, fate plan.LeftoverFate, asOf string) (Leftovers, error) {
	_, inForce := i.rules.Named(rule)
	bounds, err := parseAsOf(asOf)
	if err != nil {
		return Leftovers{}, err
	}
	clones, known := i.reader.Leftovers(rule)
	if !known {
		return Leftovers{}, errors.New("the sources are not read yet; try again")
	}
	if inForce && (fate != plan.PruneClones || len(clones) == 0) {
		return Leftovers{}, fmt.Errorf("rule %q is in the configuration, which says what becomes of its clones "+
			"(onNamespaceUnmatched, onSourceDeleted, onRuleRemoved); remove its section sync first", rule)
	}
	left := Leftovers{Rule: rule, Fate: fate, Clones: []string{}, inForce: inForce}
	var covered []*object.Digested
	for _, clone := range clones {
		if bounds != nil && !bounds.Cover(clone) {
			left.Skipped = append(left.Skipped, clone.Ref().String())
			continue
		}
		covered = append(covered, clone)
		left.Clones = append(left.Clones, clone.Ref().String())
	}
	slices.Sort(left.Clones)
	slices.Sort(left.Skipped)
	switch {
	case len(clones) == 0:
		return left, fmt.Errorf("no clone of a rule %q exists that another rule does not keep", rule)
	case len(covered) == 0:
		return left, fmt.Errorf("all clones of rule %q were changed since the dry run; run it again", rule)
	}
	left.bound = plan.NewLeftovers(fate, covered)
	left.AsOf = formatAsOf(left.bound.Revisions)
	return left, nil
}

// formatAsOf is the inverse of parseAsOf.
func formatAsOf(revisions plan.Revisions) string {
	var parts []string
	for _, kind := range object.Kinds {
		if revision, found := revisions[kind]; found {
			parts = append(parts, string(kind)+"="+revision)
		}
	}
	return strings.Join(parts, ",")
}

// parseAsOf parses the AsOf of a dry run; it returns nil for an empty text.
func parseAsOf(text string) (plan.Revisions, error) {
	if text == "" {
		return nil, nil
	}
	revisions := plan.Revisions{}
	for part := range strings.SplitSeq(text, ",") {
		kind, revision, found := strings.Cut(part, "=")
		if !found || revision == "" || !slices.Contains(object.Kinds, object.Kind(kind)) {
			return nil, fmt.Errorf("as-of %q is not what a dry run prints, such as Secret=123,ConfigMap=45", text)
		}
		revisions[object.Kind(kind)] = revision
	}
	return revisions, nil
}

// Perform records the request for the leader and waits until the leader has done it,
// at most for timeout. In the result, Skipped are the clones that changed meanwhile
// and were left alone.
func (i *Inspector) Perform(ctx context.Context, left Leftovers, timeout time.Duration) (Leftovers, error) {
	approval := survey.Approval{At: i.clients.AnsweredAt(), By: i.user, Leftovers: left.bound}
	if err := survey.PutApproval(ctx, i.clients.Typed, i.options.Own, left.Rule, approval); err != nil {
		return left, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	waiting := len(left.Clones)
	var changed []string
	err := wait.PollUntilContextCancel(ctx, watchInterval, true, func(context.Context) (bool, error) {
		clones, known := i.reader.Leftovers(left.Rule)
		if !known {
			return false, nil
		}
		waiting, changed = 0, nil
		for _, clone := range clones {
			name := clone.Ref().String()
			_, asked := slices.BinarySearch(left.Clones, name)
			switch {
			case left.bound.Revisions.Cover(clone):
				waiting++
			case asked:
				changed = append(changed, name)
			}
		}
		return waiting == 0, nil
	})
	if err != nil {
		return left, fmt.Errorf("recorded, but %d of %s not done after %s; the leader has an hour for it. `headwater status` says whether "+
			"a replica leads, and Events say why a clone cannot be written. Nothing is done to a clone that a rule wants of the "+
			"configuration that the service runs with", waiting, plural.Of(len(left.Clones), "clone"), timeout)
	}
	slices.Sort(changed)
	left.Skipped = changed
	left.Clones = slices.DeleteFunc(left.Clones, func(name string) bool { return slices.Contains(changed, name) })
	return left, nil
}

// Question returns the text that asks the user to confirm l.
func (l Leftovers) Question() string {
	var text strings.Builder
	l.list(&text, "to be "+l.done())
	return fmt.Sprintf("%s\nIs that meant? Type yes: ", text.String())
}

func (l Leftovers) done() string {
	if l.Fate == plan.PruneClones {
		return "deleted"
	}
	return "released"
}

// Table writes what was done, and the names of the first clones.
func (l Leftovers) Table(out *output.Writer) {
	if !l.DryRun {
		l.list(out, l.done())
		return
	}
	l.list(out, "would be "+l.done())
	_, _ = fmt.Fprintf(out, "to do just this, and nothing to a clone that is changed from now on: --as-of %s\n", l.AsOf)
}

func (l Leftovers) list(out io.Writer, done string) {
	why := "which is no longer in the configuration"
	if l.inForce {
		why = "which does not want them; an earlier build wrote them without their namespace and name"
	}
	_, _ = fmt.Fprintf(out, "%s: %s of rule %s, %s\n", done, plural.Of(len(l.Clones), "clone"), l.Rule, why)
	for _, clone := range l.Clones[:min(len(l.Clones), shownNames)] {
		_, _ = fmt.Fprintln(out, "  "+clone)
	}
	if more := len(l.Clones) - shownNames; more > 0 {
		_, _ = fmt.Fprintf(out, "  and %d more; -o json names all\n", more)
	}
	if len(l.Skipped) > 0 {
		_, _ = fmt.Fprintf(out, "left alone, since changed meanwhile: %s\n", andMore(l.Skipped[:min(len(l.Skipped), shownNames)], len(l.Skipped)))
	}
}

// Names lists the affected clones.
func (l Leftovers) Names() []string { return l.Clones }
