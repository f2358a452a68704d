package property

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// oracle says what must be there, from what the documents promise and not from
// how Headwater decides. It knows the cluster, the rules, and whose objects
// are strangers'; of the past, no more than what the clones' marks tell.
type oracle struct {
	rules      []config.Rule
	namespaces map[string]map[string]string
	objects    map[object.Ref]*object.Full
	strangers  map[object.Ref]version
	takeable   map[object.Ref]bool
}

func (o oracle) add(obj any) {
	if full, err := object.FromAPI(obj); err == nil && full.Name != "kube-root-ca.crt" {
		o.objects[full.Ref()] = full
	}
}

// judge looks at every place where a clone may be, and tells all that is wrong.
func (o oracle) judge() error {
	var errs []error
	for namespace := range o.namespaces {
		for _, kind := range object.Kinds {
			for _, name := range cloneNames {
				ref := object.Ref{Kind: kind, Namespace: namespace, Name: name}
				if err := o.judgePlace(ref); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", ref, err))
				}
			}
		}
	}
	for ref := range o.objects {
		if o.namespaces[ref.Namespace] != nil && !slices.Contains(cloneNames, ref.Name) {
			errs = append(errs, fmt.Errorf("%s: nobody ever asked for it", ref))
		}
	}
	return errors.Join(errs...)
}

func (o oracle) judgePlace(ref object.Ref) error {
	got := o.objects[ref]
	rule, source := o.winner(ref)
	if left, theirs := o.strangers[ref]; theirs {
		untouched := got != nil && versionOf(got) == left
		switch {
		case !untouched && !o.takeable[object.Ref{Kind: ref.Kind, Name: ref.Name}]:
			return errors.New("a stranger's object was touched, and no rule may")
		case untouched && source != nil && usable(rule, source) && takes(rule, source, got):
			return fmt.Errorf("a stranger's object was not taken over, as rule %s says", rule.Name)
		case untouched:
			return nil
		}
	}
	switch {
	case source == nil:
		return o.judgeLeftover(ref, got, rule)
	case !usable(rule, source): // held: what is there stays, whatever it is
		return nil
	case got == nil:
		return fmt.Errorf("the clone of rule %s is missing", rule.Name)
	case mustStay(rule, source, got):
		return nil
	default:
		return differs(wanted(rule, source), got)
	}
}

// mustStay reports whether got lost a mark and can get the content of source only
// by being deleted, which Headwater does without its marks only if onConflict
// allows it.
func mustStay(rule *config.Rule, source, got *object.Full) bool {
	_, marked := mark.Of(got)
	return !marked && (got.Content.Immutable || got.Content.Type != source.Content.Type) && !takes(rule, source, got)
}

// winner is the first rule that wants a clone in ref. A source that was named
// and is not there is nil; its rule has the place nevertheless.
func (o oracle) winner(ref object.Ref) (*config.Rule, *object.Full) {
	for i := range o.rules {
		rule := &o.rules[i]
		from, reaches := sourceOf(*rule, ref)
		if reaches && o.inScope(rule, ref.Namespace) && (rule.Source.Selector == nil || o.selected(rule, from)) {
			return rule, o.objects[from]
		}
	}
	return nil, nil
}

// sourceOf is the source whose clone rule calls ref.
func sourceOf(rule config.Rule, ref object.Ref) (source object.Ref, reaches bool) {
	name := rule.Source.Name
	if rule.Source.Selector != nil {
		name = ref.Name
	}
	called := name
	if rule.Sync.Target.Name != "" {
		called = rule.Sync.Target.Name
	}
	return object.Ref{Kind: rule.Source.Kind, Namespace: rule.Source.Namespace, Name: name},
		rule.Source.Kind == ref.Kind && called == ref.Name
}

func (o oracle) inScope(rule *config.Rule, namespace string) bool {
	matches := func(glob string) bool {
		matched, err := path.Match(glob, namespace)
		return err == nil && matched
	}
	scope := rule.Sync.Namespaces
	return slices.ContainsFunc(scope.Include, matches) && !slices.ContainsFunc(scope.Exclude, matches) &&
		(scope.Selector == nil || o.namespaces[namespace]["tier"] == scope.Selector.MatchLabels["tier"])
}

// selected reports whether the source is there and is one of the rule's.
func (o oracle) selected(rule *config.Rule, source object.Ref) bool {
	found := o.objects[source]
	return found != nil && (rule.Source.Selector == nil || found.Labels["share"] == "yes")
}

// usable reports whether the source has every key that the rule asks for, and a value in one.
func usable(rule *config.Rule, source *object.Full) bool {
	return !wanted(rule, source).Content.Empty() && !slices.ContainsFunc(rule.Sync.Target.Keys, func(key syncspec.KeyMapping) bool {
		_, found := source.Content.Data[key.From]
		return !found
	})
}

// takes reports whether the rule makes a stranger's object its own.
func takes(rule *config.Rule, source, found *object.Full) bool {
	switch rule.Sync.OnConflict {
	case syncspec.ConflictOverwrite:
		return true
	case syncspec.ConflictAdoptIfEqual:
		return samePayload(wanted(rule, source).Content, found.Content)
	default:
		return false
	}
}

// judgeLeftover judges what lies where no clone is called for, or where one is
// whose source, given by name, is not there. What carries no marks for its place
// may stay: nobody can say whose it is. A clone must be gone only if everything that is
// wrong with it says Delete: which of two policies goes first is not promised.
// So it is not promised what becomes of a clone that is outranked by a rule
// whose source is not there.
func (o oracle) judgeLeftover(ref object.Ref, got *object.Full, winner *config.Rule) error {
	if got == nil {
		return nil
	}
	marks, marked := mark.Of(got)
	policies := o.policies(ref, marks)
	if !marked || len(policies) == 0 || slices.ContainsFunc(policies, func(p syncspec.OnGone) bool { return p != syncspec.Delete }) {
		return nil
	}
	return fmt.Errorf("the clone of rule %s must be gone: %v (winner %v)", marks.Rule, policies, winner)
}

// policies are those that apply to a clone with these marks.
func (o oracle) policies(ref object.Ref, marks mark.Clone) []syncspec.OnGone {
	at := slices.IndexFunc(o.rules, func(rule config.Rule) bool { return rule.Name == marks.Rule })
	if at < 0 {
		return []syncspec.OnGone{syncspec.OnGone(marks.OnRuleRemoved)}
	}
	var policies []syncspec.OnGone
	rule := &o.rules[at]
	source, reaches := sourceOf(*rule, ref)
	if !reaches || source != marks.Source {
		policies = append(policies, rule.Sync.OnRuleRemoved)
	}
	if !o.inScope(rule, ref.Namespace) {
		policies = append(policies, rule.Sync.OnNamespaceUnmatched)
	}
	if reaches && !o.selected(rule, source) {
		policies = append(policies, rule.Sync.OnSourceDeleted)
	}
	return policies
}

// wanted is the clone, as far as it is the rule's business.
func wanted(rule *config.Rule, source *object.Full) *object.Full {
	target := rule.Sync.Target
	clone := &object.Full{Content: source.Content}
	clone.Labels = chosen(source.Labels, target.CopyLabels, target.Labels)
	clone.Annotations = chosen(source.Annotations, target.CopyAnnotations, target.Annotations)
	clone.Labels[mark.CloneLabel], clone.Labels[mark.Rule] = "true", rule.Name
	clone.Annotations[mark.Rule] = rule.Name
	clone.Annotations[mark.Source] = source.Ref().String()
	clone.Annotations[mark.SourceUID] = string(source.UID)
	if rule.Sync.OnRuleRemoved == syncspec.Delete {
		clone.Annotations[mark.OnRuleRemoved] = "Delete"
	}
	if len(target.Keys) > 0 {
		clone.Content.Data = map[string][]byte{}
	}
	for _, key := range target.Keys {
		to := key.To
		if to == "" {
			to = key.From
		}
		clone.Content.Data[to] = source.Content.Data[key.From]
	}
	return clone
}

func chosen(from map[string]string, globs []string, more map[string]string) map[string]string {
	all := map[string]string{}
	for key, value := range from {
		if slices.ContainsFunc(globs, func(glob string) bool { matched, _ := path.Match(glob, key); return matched }) {
			all[key] = value
		}
	}
	maps.Copy(all, more)
	return all
}

func differs(want, got *object.Full) error {
	labels, annotations := maps.Clone(got.Labels), maps.Clone(got.Annotations)
	maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, theirs) })
	delete(annotations, mark.SourceVersion) // of the last write, whenever that was
	delete(annotations, mark.Target)
	switch {
	case mark.PlaceOf(got) != object.Here:
		return fmt.Errorf("names the place %q", got.Annotations[mark.Target])
	case !samePayload(want.Content, got.Content):
		return fmt.Errorf("holds %s, want %s", payload(got.Content), payload(want.Content))
	case !maps.Equal(labels, want.Labels):
		return fmt.Errorf("has labels %v, want %v", labels, want.Labels)
	case !maps.Equal(annotations, want.Annotations):
		return fmt.Errorf("has annotations %v, want %v", annotations, want.Annotations)
	}
	return nil
}

func samePayload(a, b object.Content) bool {
	return a.Type == b.Type && a.Immutable == b.Immutable &&
		maps.EqualFunc(a.Data, b.Data, func(a, b []byte) bool { return string(a) == string(b) })
}
