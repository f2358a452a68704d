package inspect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// History lists the recorded revisions of a rule's sources.
type History struct {
	Rule    string          `json:"rule"`
	Sources []sourceHistory `json:"sources"`
}

// sourceHistory lists the revisions of one source, the newest first.
type sourceHistory struct {
	Source    string           `json:"source"`
	Revisions []revisionStatus `json:"revisions"`
}

// revisionStatus is one recorded revision.
type revisionStatus struct {
	Number   int              `json:"number"`
	Recorded time.Time        `json:"recorded"`
	EditedBy string           `json:"editedBy,omitempty"`
	Verdict  delivery.Verdict `json:"verdict"`
	// Stage is the one that the delivery has reached; empty if none is under way.
	Stage  string `json:"stage,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Pinned and Paused name who asked for it, and when.
	Pinned string `json:"pinned,omitempty"`
	Paused string `json:"paused,omitempty"`
	// Clones is how many clones name the revision; only rules with a delivery count.
	Clones int `json:"clones"`
}

// History returns the revisions of rule. source limits it to the source of that
// name; empty means all.
func (i *Inspector) History(rule, source string) (History, error) {
	sources, err := i.recorded(rule, source)
	if err != nil {
		return History{}, err
	}
	clones := map[object.Ref]map[string]int{}
	for _, clone := range i.reader.ClonesOf(rule) {
		if marks, ours := mark.Of(clone); ours {
			if clones[marks.Source] == nil {
				clones[marks.Source] = map[string]int{}
			}
			clones[marks.Source][clone.Annotations[mark.Revision]]++
		}
	}
	found := History{Rule: rule, Sources: []sourceHistory{}}
	for _, one := range sources {
		shown := sourceHistory{Source: one.source.String(), Revisions: []revisionStatus{}}
		for _, r := range slices.Backward(one.history) {
			shown.Revisions = append(shown.Revisions, revisionStatus{
				Number: r.Number, Recorded: r.Recorded, EditedBy: r.EditedBy, Verdict: r.Verdict, Stage: r.Stage, Reason: r.Reason,
				Pinned: r.Pinned, Paused: r.Paused, Clones: clones[one.source][strconv.Itoa(r.Number)],
			})
		}
		found.Sources = append(found.Sources, shown)
	}
	return found, nil
}

// recorded is a source with its revisions.
type recorded struct {
	source  object.Ref
	history delivery.History
}

// recorded returns the sources of rule that have revisions, by name.
func (i *Inspector) recorded(name, source string) ([]recorded, error) {
	var all []recorded
	for _, key := range i.reader.Revisions.KeysOf(name) {
		if source == "" || key.Source.Name == source {
			all = append(all, recorded{key.Source, i.reader.Revisions.History(key)})
		}
	}
	slices.SortFunc(all, func(a, b recorded) int { return strings.Compare(a.source.String(), b.source.String()) })
	rule, found := i.rules.Named(name)
	switch {
	case len(all) > 0:
		return all, nil
	case !found:
		return nil, fmt.Errorf("no rule %q clones anything; those that do: %s", name, namesOf(i.rules))
	case !rule.KeepsHistory():
		return nil, fmt.Errorf("rule %q keeps no revisions; set sync.history or sync.delivery", name)
	case source != "":
		return nil, fmt.Errorf("rule %q has no revision of a source named %q", name, source)
	default:
		return nil, fmt.Errorf("no revision of rule %q is recorded yet; does its source exist, and does a replica lead? See headwater status", name)
	}
}

// only returns the one source that a command is about.
func (i *Inspector) only(rule, source string) (recorded, error) {
	all, err := i.recorded(rule, source)
	if err != nil {
		return recorded{}, err
	}
	if len(all) > 1 {
		var names []string
		for _, one := range all {
			names = append(names, one.source.Name)
		}
		return recorded{}, fmt.Errorf("rule %q has several sources; choose one by --source: %s", rule, strings.Join(names, ", "))
	}
	return all[0], nil
}

// Table writes a line per revision.
func (h History) Table(out *output.Writer) {
	var rows [][]string
	for _, source := range h.Sources {
		for _, r := range source.Revisions {
			reason := r.Reason
			for _, asked := range []struct{ what, by string }{{"rolled back to it ", r.Pinned}, {"paused ", r.Paused}} {
				if asked.by != "" {
					reason = strings.TrimPrefix(reason+"; "+asked.what+asked.by, "; ")
				}
			}
			rows = append(rows, []string{
				source.Source, strconv.Itoa(r.Number), duration.HumanDuration(time.Since(r.Recorded)), orDash(r.EditedBy),
				string(r.Verdict), orDash(r.Stage), strconv.Itoa(r.Clones), reason,
			})
		}
	}
	out.Rows(rows, []string{"SOURCE", "REVISION", "AGE", "BY", "VERDICT", "STAGE", "CLONES", "REASON"})
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// revisionDiff says which keys differ between two revisions of a source.
type revisionDiff struct {
	Rule   string    `json:"rule"`
	Source string    `json:"source"`
	From   int       `json:"from"`
	To     int       `json:"to"`
	Keys   []keyDiff `json:"keys"`
}

// keyDiff is a key that differs. From and To are its values, if they were asked
// for and the source is a ConfigMap.
type keyDiff struct {
	Key    string  `json:"key"`
	Change string  `json:"change"` // Added, Removed or Changed
	From   *string `json:"from,omitempty"`
	To     *string `json:"to,omitempty"`
}

// Diff compares two revisions of a rule's source. from and to are numbers; 0 means
// the stable revision and the newest one. The values of a Secret are never shown.
func (i *Inspector) Diff(rule, source string, from, to int, values bool) (revisionDiff, error) {
	one, err := i.only(rule, source)
	if err != nil {
		return revisionDiff{}, err
	}
	if values && one.source.Kind == object.Secret {
		return revisionDiff{}, errors.New("the values of a Secret are never shown; leave out --values")
	}
	before, err := pick(one.history, from, one.history.Stable())
	if err != nil {
		return revisionDiff{}, err
	}
	after, err := pick(one.history, to, one.history.Newest())
	if err != nil {
		return revisionDiff{}, err
	}
	return revisionDiff{Rule: rule, Source: one.source.String(), From: before.Number, To: after.Number, Keys: differences(before.Content, after.Content, values)}, nil
}

func pick(history delivery.History, number int, standard *delivery.Revision) (*delivery.Revision, error) {
	if number == 0 && standard != nil {
		return standard, nil
	}
	if found := history.Numbered(number); found != nil {
		return found, nil
	}
	if number == 0 {
		return nil, errors.New("no revision was delivered yet; name two revisions, as headwater history lists them")
	}
	return nil, fmt.Errorf("revision %d is not kept; see headwater history", number)
}

func differences(before, after object.Content, values bool) []keyDiff {
	old, recent := valuesOf(before), valuesOf(after)
	differ := []keyDiff{}
	for _, key := range slices.Sorted(maps.Keys(object.Merged(keysOf(old), keysOf(recent)))) {
		from, had := old[key]
		to, has := recent[key]
		diff := keyDiff{Key: key, Change: "Changed"}
		switch {
		case had && has && bytes.Equal(from, to):
			continue
		case !had:
			diff.Change = "Added"
		case !has:
			diff.Change = "Removed"
		}
		if values && had {
			diff.From = new(string(from))
		}
		if values && has {
			diff.To = new(string(to))
		}
		differ = append(differ, diff)
	}
	return differ
}

func valuesOf(content object.Content) map[string][]byte {
	all := maps.Clone(content.Data)
	if all == nil {
		all = map[string][]byte{}
	}
	maps.Copy(all, content.BinaryData)
	return all
}

func keysOf(values map[string][]byte) map[string]string {
	keys := map[string]string{}
	for key := range values {
		keys[key] = ""
	}
	return keys
}

// Table writes a line per key that differs.
func (d revisionDiff) Table(out *output.Writer) {
	_, _ = fmt.Fprintf(out, "%s: revision %d to %d of rule %s\n", d.Source, d.From, d.To, d.Rule)
	if len(d.Keys) == 0 {
		_, _ = fmt.Fprintln(out, "no key differs")
	}
	for _, key := range d.Keys {
		_, _ = fmt.Fprintf(out, "%-8s %s\n", key.Change, key.Key)
		printLines(out, "-", key.From)
		printLines(out, "+", key.To)
	}
}

func printLines(out io.Writer, sign string, value *string) {
	if value == nil {
		return
	}
	for line := range strings.Lines(*value) {
		_, _ = fmt.Fprintf(out, "  %s %s\n", sign, strings.TrimSuffix(line, "\n"))
	}
}

// steered is what the user asked of the deliveries of a rule.
type steered struct {
	Rule string        `json:"rule"`
	Verb delivery.Verb `json:"verb"`
	// Revisions are the numbers that it is about, by source.
	Revisions map[string]int `json:"revisions"`
}

// Steer asks the leader to do verb with the deliveries of rule, and waits until it
// has taken the request, at most for timeout. to is the revision to roll back to, or
// 0. source is the name of the source, or empty for each one that verb fits.
func (i *Inspector) Steer(ctx context.Context, rule, source string, verb delivery.Verb, to int, timeout time.Duration) (steered, error) {
	requests, err := i.requests(rule, source, verb, to)
	if err != nil {
		return steered{}, err
	}
	approval := i.reader.Approvals.Of(rule)
	if approval.At.IsZero() {
		approval.At, approval.By = time.Now(), i.user
	}
	for source, request := range approval.Deliveries {
		if _, replaced := requests[source]; !replaced {
			requests[source] = request
		}
	}
	approval.Deliveries = requests
	if err := survey.SetApproval(ctx, i.clients.Typed, i.options.Own, rule, approval); err != nil {
		return steered{}, err
	}
	steered := steered{Rule: rule, Verb: verb, Revisions: map[string]int{}}
	for source, request := range requests {
		steered.Revisions[source] = cmp.Or(request.To, request.Revision)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, watchInterval, false, func(context.Context) (bool, error) {
		left := i.reader.Approvals.Of(rule).Deliveries
		return !slices.ContainsFunc(slices.Collect(maps.Keys(requests)), func(source string) bool { return left[source] == requests[source] }), nil
	})
	if err != nil {
		return steered, fmt.Errorf("recorded, but no leader took it within %s; see headwater status", timeout)
	}
	return steered, nil
}

// requests returns what to ask for each source of rule that verb fits.
func (i *Inspector) requests(name, source string, verb delivery.Verb, to int) (map[string]delivery.Request, error) {
	sources, err := i.recorded(name, source)
	if err != nil {
		return nil, err
	}
	if to != 0 && len(sources) > 1 {
		_, err := i.only(name, source)
		return nil, err
	}
	rule, found := i.rules.Named(name)
	if !found {
		return nil, fmt.Errorf("rule %q is not in the configuration, so it delivers nothing", name)
	}
	requests, refused := map[string]delivery.Request{}, error(nil)
	for _, one := range sources {
		request, err := aim(one.history, verb, to)
		request.By, request.At = i.user, time.Now().UTC().Truncate(time.Millisecond)
		if err == nil {
			_, err = i.reader.Apply(rule, one.history, nil, request, request.At)
		}
		if err != nil {
			refused = fmt.Errorf("%s: %w", one.source, err)
			continue
		}
		requests[one.source.String()] = request
	}
	if len(requests) == 0 {
		return nil, refused
	}
	return requests, nil
}

// aim returns the request for verb. to is the revision to go back to; 0 if there is
// none.
func aim(history delivery.History, verb delivery.Verb, to int) (delivery.Request, error) {
	request, target := delivery.Request{Verb: verb, To: to}, history.Candidate()
	switch {
	case to != 0:
		return request, nil
	case verb == delivery.Resume && history.Pinned() != nil:
		target = history.Pinned()
	case verb == delivery.Retry && target == nil:
		target = history.Newest()
	case verb == delivery.Rollback && target == nil:
		return request, errors.New("no delivery is under way; say by --to which revision to go back to, as headwater history lists them")
	}
	if target == nil {
		return request, fmt.Errorf("no delivery is under way, so there is nothing to %s", verb)
	}
	request.Revision = target.Number
	return request, nil
}

// Table writes what was asked.
func (s steered) Table(out *output.Writer) {
	for _, source := range slices.Sorted(maps.Keys(s.Revisions)) {
		_, _ = fmt.Fprintf(out, "%s: %s of revision %d; `headwater history %s` shows what comes of it\n", source, s.Verb, s.Revisions[source], s.Rule)
	}
}
