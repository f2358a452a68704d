package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/revisions"
)

// recorded is a source with its revisions.
type recorded struct {
	source  object.Ref
	history revisions.History
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

func pick(history revisions.History, number int, standard *revisions.Revision) (*revisions.Revision, error) {
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
