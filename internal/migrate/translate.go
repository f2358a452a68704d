package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect"
)

// Result is what came of an Input.
type Result struct {
	// Rules are in the order of the file.
	Rules []Rule
	// Left is what no rule says, not even one that is a comment.
	Left []Left
	// Unread is what could not be read, at FILE:LINE.
	Unread []Left
	// Tools are those that something was found of.
	Tools map[Tool]bool
	// Jobs tell which of Kyverno's jobs were found.
	Clones, Denies, Restarts bool
}

// Left is something that is not carried over, and why.
type Left struct{ From, Why string }

// Rule is one of Headwater's rules, put together of what tools say about one
// source.
type Rule struct {
	Name    string
	From    []string
	Source  rules.Source
	Sync    *syncPart
	Protect *protectPart
	Reload  *reloadPart
	// Notes say what is not as it was; Less, that some of it is left out.
	Notes []string
	Less  bool
	// Off is why the rule is a comment; empty: it is in force.
	Off string
}

// Carried reports whether everything that was found is in force.
func (r Result) Carried() bool {
	return len(r.Left)+len(r.Unread) == 0 && !slices.ContainsFunc(r.Rules, func(rule Rule) bool {
		return rule.Off != "" || rule.Less || rule.Reload != nil && rule.Reload.Off != ""
	})
}

// Empty reports whether nothing was found of any tool in what could be read.
func (r Result) Empty() bool { return len(r.Rules) == 0 && len(r.Left) == 0 }

// Translate is pure: the same input always gives the same result.
func Translate(in Input) Result {
	result := Result{Unread: in.Unread, Tools: map[Tool]bool{}}
	var found []finding
	kyverno := func(of []finding, left []Left) {
		found = append(found, of...)
		result.Left = append(result.Left, left...)
		result.Tools[Kyverno] = result.Tools[Kyverno] || len(of)+len(left) > 0
	}
	for _, policy := range in.Policies {
		kyverno(ofPolicy(policy))
	}
	for _, policy := range in.CELPolicies {
		kyverno(ofCELPolicy(policy))
	}
	all := indexed(in.Objects)
	slices.SortFunc(in.Objects, func(a, b Object) int { return strings.Compare(a.String(), b.String()) })
	for _, o := range in.Objects {
		if !o.isClone() {
			found = append(found, ofReflector(o, all)...)
			found = append(found, ofReplicator(o, all)...)
		}
	}
	for _, f := range found {
		result.Tools[f.Tool] = true
		if f.Tool == Kyverno {
			result.Clones, result.Denies, result.Restarts = result.Clones || f.Sync != nil, result.Denies || f.Protect != nil, result.Restarts || f.Reload != nil
		}
	}
	b := builder{result: &result}
	b.build(found)
	return result
}

// builder puts findings together into rules.
type builder struct {
	result *Result
	off    []finding
}

// build makes rules of what clones first: the rest is about what they name.
func (b *builder) build(found []finding) {
	for _, part := range []struct {
		is  func(finding) bool
		add func(finding)
	}{
		{func(f finding) bool { return f.Sync != nil }, b.addSync},
		{func(f finding) bool { return f.Protect != nil }, b.addProtect},
		{func(f finding) bool { return f.Reload != nil }, b.addReload},
		{func(f finding) bool { return f.Sync == nil && f.Protect == nil && f.Reload == nil }, b.leave},
	} {
		for _, f := range found {
			if part.is(f) {
				b.sort(f, part.add)
			}
		}
	}
	for _, f := range b.off {
		b.newRule(f)
	}
	b.name()
}

// sort puts aside what must not be in force.
func (b *builder) sort(f finding, add func(finding)) {
	switch {
	case f.Off != "" && f.Everywhere:
		b.leave(f)
	case f.Off != "" && (f.Sync != nil || f.Protect != nil || f.Reload != nil):
		b.off = append(b.off, f)
	default:
		add(f)
	}
}

func (b *builder) leave(f finding) { b.result.Left = append(b.result.Left, Left{f.From, f.Off}) }

func (b *builder) newRule(f finding) {
	b.result.Rules = append(b.result.Rules, Rule{
		From: []string{f.From}, Source: f.Source, Sync: f.Sync, Protect: f.Protect, Reload: f.Reload, Notes: distinct(f.Notes), Less: f.Less, Off: f.Off,
	})
}

// into adds what f says to rule.
func (f finding) into(rule *Rule) {
	rule.From = distinct(rule.From, []string{f.From})
	rule.Notes = distinct(rule.Notes, f.Notes)
	rule.Less = rule.Less || f.Less
}

// addSync joins what differs in the names of namespaces alone.
func (b *builder) addSync(f finding) {
	for i := range b.result.Rules {
		rule := &b.result.Rules[i]
		have, more := rule.Sync, f.Sync
		if have == nil || !sameSource(rule.Source, f.Source) || have.TargetName != more.TargetName || have.CopyLabels != more.CopyLabels ||
			have.OnSourceDeleted != more.OnSourceDeleted {
			continue
		}
		if joined := joinNames([]where{have.Where, more.Where}); len(joined) == 1 {
			have.Where = joined[0]
			f.into(rule)
			return
		}
	}
	b.newRule(f)
}

func sameSource(a, b rules.Source) bool { return a.String() == b.String() }

// addProtect adds to the first rule of the source that protects nothing yet. A
// second policy about a source gets a rule of its own: both are asked then, as
// they are now.
func (b *builder) addProtect(f finding) {
	var at *Rule
	var names []string
	for i := range b.result.Rules {
		rule := &b.result.Rules[i]
		if f.about(*rule) && rule.Protect == nil && (at == nil || f.Everywhere) {
			at = rule
			names = append(names, rule.Source.String())
			if f.Everywhere {
				protecting := *f.Protect
				protecting.Clones = protect.Deny
				rule.Protect = &protecting
				f.into(rule)
				rule.Notes = append(rule.Notes, fmt.Sprintf("the policy is about every %s of that name; this protects the source and its clones", f.Source.Kind))
			}
		}
	}
	switch {
	case f.Everywhere && len(names) == 0:
		b.result.Left = append(b.result.Left, Left{f.From, fmt.Sprintf(
			"it is about %s %s in every namespace, and nothing was found that clones it; name its namespace", f.Source.Kind, f.Source.Name)})
	case f.Everywhere:
	case at == nil:
		b.newRule(f)
	default:
		at.Protect = f.Protect
		f.into(at)
	}
}

// about reports whether f is about the source of rule; of one in every
// namespace, about its clones as well.
func (f finding) about(rule Rule) bool {
	if !f.Everywhere {
		return sameSource(rule.Source, f.Source)
	}
	return rule.Sync != nil && rule.Source.Kind == f.Source.Kind && rule.Source.Selector == nil &&
		rule.Source.Name == f.Source.Name && cmp.Or(rule.Sync.TargetName, rule.Source.Name) == f.Source.Name
}

// addReload adds to every rule that makes clones that f is about. One that is
// about the source's namespace alone gets a rule of its own, which reaches no
// clone.
func (b *builder) addReload(f finding) {
	if !f.Everywhere {
		for i := range b.result.Rules {
			if rule := &b.result.Rules[i]; rule.Sync == nil && rule.Reload == nil && f.about(*rule) {
				rule.Reload = f.Reload
				f.into(rule)
				return
			}
		}
		f.Off, f.Reload.Off = f.Reload.Off, "" // the rule would do nothing else
		b.newRule(f)
		return
	}
	added := false
	for i := range b.result.Rules {
		if rule := &b.result.Rules[i]; f.about(*rule) && rule.Reload == nil {
			reloading := *f.Reload
			rule.Reload = &reloading
			f.into(rule)
			added = true
		}
	}
	if !added {
		b.result.Left = append(b.result.Left, Left{f.From, fmt.Sprintf(
			"it restarts for %s %s of every namespace, and nothing was found that clones it; name its namespace, or have the owners "+
				"of workloads ask by annotation", f.Source.Kind, f.Source.Name)})
	}
}

var notOfALabel = regexp.MustCompile(`[^a-z0-9]+`)

// name gives each rule a name after its source.
func (b *builder) name() {
	taken := map[string]bool{}
	for i := range b.result.Rules {
		rule := &b.result.Rules[i]
		base := rule.Source.Name
		if rule.Source.Selector != nil {
			base = rule.Source.Namespace + "-" + metav1.FormatLabelSelector(rule.Source.Selector)
		}
		base = strings.Trim(notOfALabel.ReplaceAllString(strings.ToLower(base), "-"), "-")
		base = cmp.Or(strings.Trim(base[:min(len(base), 55)], "-"), "rule")
		rule.Name = base
		for n := 2; taken[rule.Name]; n++ {
			rule.Name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[rule.Name] = true
	}
}
