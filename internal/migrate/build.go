package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
)

// builder puts findings together into rules.
type builder struct {
	result *Result
	off    []ir.Finding
}

// build makes rules of what clones first: the rest is about what they name.
func (b *builder) build(found []ir.Finding) {
	for _, part := range []struct {
		is  func(ir.Finding) bool
		add func(ir.Finding)
	}{
		{func(f ir.Finding) bool { return f.Sync != nil }, b.addSync},
		{func(f ir.Finding) bool { return f.Protect != nil }, b.addProtect},
		{func(f ir.Finding) bool { return f.Reload != nil }, b.addReload},
		{func(f ir.Finding) bool { return f.Section != nil }, b.addSection},
		{func(f ir.Finding) bool {
			return f.Sync == nil && f.Protect == nil && f.Reload == nil && f.Section == nil
		}, b.leave},
	} {
		for _, f := range found {
			if f = checked(f); part.is(f) {
				b.sort(f, part.add)
			}
		}
	}
	for _, f := range b.off {
		b.newRule(f)
	}
	for _, rule := range b.result.Rules {
		if rule.Reload != nil {
			for _, from := range rule.Reload.From {
				b.account(ir.Finding{From: from}, first(rule.Off, rule.Reload.Off))
			}
		}
	}
	b.name()
}

func first(reasons ...ir.Reason) ir.Reason {
	for _, reason := range reasons {
		if !reason.None() {
			return reason
		}
	}
	return ir.Reason{}
}

// sort puts aside what must not be in force.
func (b *builder) sort(f ir.Finding, add func(ir.Finding)) {
	switch {
	case !f.Off.None() && f.Everywhere:
		b.leave(f)
	case !f.Off.None() && (f.Sync != nil || f.Protect != nil || f.Reload != nil):
		b.off = append(b.off, f)
	default:
		add(f)
	}
}

func (b *builder) leave(f ir.Finding) {
	b.result.Left = append(b.result.Left, ir.Left{From: f.From, Why: f.Off})
	b.account(f, f.Off)
}

// leaveBecause leaves f out for a reason that it did not have.
func (b *builder) leaveBecause(f ir.Finding, cause ir.Cause, values ...string) {
	f.Off = ir.Because(cause, values...)
	b.leave(f)
}

func (b *builder) newRule(f ir.Finding) {
	if !f.Off.None() && f.Reload != nil && !f.Reload.Off.None() { // the section is in the comment that the rule is
		f.Notes = append(f.Notes, f.Reload.Off)
		f.Reload.Off = ir.Reason{}
	}
	if f.Reload != nil {
		f.Reload.From = []string{f.From}
	}
	b.accountJob(f)
	b.result.Rules = append(b.result.Rules, migratedRule{
		From: []string{f.From}, Source: f.Source, Sync: f.Sync, Protect: f.Protect, Reload: f.Reload, Notes: ir.Distinct(f.Notes), Off: f.Off,
	})
}

// accountJob accounts for f; for a restart, once all are known.
func (b *builder) accountJob(f ir.Finding) {
	if f.Reload == nil {
		b.account(f, f.Off)
	}
}

// addTo adds what f says to rule.
func (b *builder) addTo(rule *migratedRule, f ir.Finding) {
	b.accountJob(f)
	rule.From = ir.Distinct(rule.From, []string{f.From})
	rule.Notes = ir.Distinct(rule.Notes, f.Notes)
}

// addSync joins what differs in the names of namespaces alone.
func (b *builder) addSync(f ir.Finding) {
	for i := range b.result.Rules {
		rule := &b.result.Rules[i]
		have, more := rule.Sync, f.Sync
		if have == nil || !sameSource(rule.Source, f.Source) || have.TargetName != more.TargetName || have.CopyLabels != more.CopyLabels ||
			have.OnSourceDeleted != more.OnSourceDeleted {
			continue
		}
		if joined := ir.JoinNames([]ir.Where{have.Where, more.Where}); len(joined) == 1 {
			have.Where = joined[0]
			b.addTo(rule, f)
			return
		}
	}
	b.newRule(f)
}

func sameSource(a, b rules.Source) bool { return a.String() == b.String() }

// addProtect adds to the first rule of the source. A source with a name has one
// protection; two policies about objects with a label get a rule each, and both
// are asked then, as they are now.
func (b *builder) addProtect(f ir.Finding) {
	about := b.rulesAbout(f)
	if len(about) == 0 && f.Everywhere {
		b.leaveBecause(f, ir.GuardedNotCloned, string(f.Source.Kind)+" "+f.Source.Name)
		return
	}
	if f.Everywhere {
		f.Protect.Clones = protectspec.Deny
		f.Note(ir.EveryOfThatName, string(f.Source.Kind))
	} else if len(about) == 0 {
		b.newRule(f)
		return
	}
	done := map[string]bool{}
	for _, rule := range about {
		if source := rule.Source.String(); !done[source] {
			done[source] = true
			b.protectBy(f, rule)
		}
	}
}

// rulesAbout are those that f is about, first those that protect already.
func (b *builder) rulesAbout(f ir.Finding) []*migratedRule {
	var protecting, others []*migratedRule
	for i := range b.result.Rules {
		switch rule := &b.result.Rules[i]; {
		case !isAbout(f, *rule):
		case rule.Protect != nil:
			protecting = append(protecting, rule)
		default:
			others = append(others, rule)
		}
	}
	return slices.Concat(protecting, others)
}

func (b *builder) protectBy(f ir.Finding, rule *migratedRule) {
	adding := *f.Protect
	switch {
	case rule.Protect == nil:
		rule.Protect = &adding
		b.addTo(rule, f)
	case rule.Protect.Join(adding):
		b.addTo(rule, f)
	case rule.Source.Selector != nil:
		b.newRule(f)
	default:
		f.Source = rule.Source
		f.Disable(ir.ProtectedAlready, strings.Join(rule.From, "; "), rule.Source.String())
		b.off = append(b.off, f)
	}
}

// isAbout reports whether f is about the source of rule; of one in every
// namespace, about its clones as well.
func isAbout(f ir.Finding, rule migratedRule) bool {
	if !f.Everywhere {
		return sameSource(rule.Source, f.Source)
	}
	return rule.Sync != nil && rule.Source.Kind == f.Source.Kind && rule.Source.Selector == nil &&
		rule.Source.Name == f.Source.Name && cmp.Or(rule.Sync.TargetName, rule.Source.Name) == f.Source.Name
}

// addReload adds to every rule that makes clones that f is about. One that is
// isAbout the source's namespace alone gets a rule of its own, which reaches no
// clone.
func (b *builder) addReload(f ir.Finding) {
	known, added := false, false
	for i := range b.result.Rules {
		rule := &b.result.Rules[i]
		if !isAbout(f, *rule) || !f.Everywhere && rule.Sync != nil {
			continue
		}
		known = true
		if b.reloadBy(rule, f) {
			added = true
		}
	}
	switch {
	case added:
	case !f.Everywhere:
		f.Off, f.Reload.Off = f.Reload.Off, ir.Reason{} // the rule would do nothing else
		b.newRule(f)
	case known:
		b.leaveBecause(f, ir.OtherSelector)
	default:
		b.leaveBecause(f, ir.RestartsNotCloned, string(f.Source.Kind)+" "+f.Source.Name)
	}
}

// reloadBy adds what f restarts, unless that needs a rule of its own.
func (b *builder) reloadBy(rule *migratedRule, f ir.Finding) bool {
	if rule.Reload == nil {
		reloading := *f.Reload
		rule.Reload = &reloading
	} else if !rule.Reload.Join(*f.Reload) {
		return false
	}
	rule.Reload.From = ir.Distinct(rule.Reload.From, []string{f.From})
	b.addTo(rule, f)
	if !rule.Off.None() { // it was nothing but a section that is a comment
		rule.Off, rule.Reload.Off = rule.Reload.Off, ir.Reason{}
	}
	return true
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

// addSection joins what differs in the action alone.
func (b *builder) addSection(f ir.Finding) {
	b.account(f, f.Off)
	for i := range b.result.Sections {
		section := &b.result.Sections[i]
		have := section.Part
		have.Action = f.Section.Action
		if section.Off != f.Off || !writtenAlike(have, *f.Section) {
			continue
		}
		section.Part.Action = together(section.Part.Action, f.Section.Action)
		section.From, section.Notes = ir.Distinct(section.From, []string{f.From}), ir.Distinct(section.Notes, f.Notes)
		return
	}
	b.result.Sections = append(b.result.Sections, migratedSection{From: []string{f.From}, Part: *f.Section, Notes: f.Notes, Off: f.Off})
}

// writtenAlike reports whether s and other give the same YAML.
func writtenAlike(s, other ir.SectionPart) bool {
	one, err := encode(sectionKeysOf(s))
	another, otherErr := encode(sectionKeysOf(other))
	return err == nil && otherErr == nil && one == another
}

// together is the action that does what both do: Auto restarts and refreshes, and
// what restarts needs no refresh.
func together(a, b reloadspec.Action) reloadspec.Action {
	switch {
	case a == b, a == reloadspec.Restart:
		return a
	case b == reloadspec.Restart:
		return b
	default:
		return reloadspec.Auto
	}
}
