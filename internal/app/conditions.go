package app

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/prove"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloaddecide "github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/track"
)

// Conditions implements page.Subject.
func (s subject) Conditions() page.Conditions {
	var waits []page.Wait
	for _, waiting := range s.Reload.Waiting() {
		waits = append(waits, waitOf(waiting))
	}
	return page.Conditions{
		File: fileOf(s.Settings.ConfigFile, s.Reloader.invalid.Load()), Todos: s.todos(), Doubt: s.Keeper.Doubt(), Rules: s.rules(), Waits: page.NewWaits(waits),
		Namespaces: len(s.Caches.Namespaces.List()), Refusals: s.Protect.Engine() == protectspec.EngineWebhook,
	}
}

// todos are nil while nobody knows them.
func (s subject) todos() []page.Todo {
	all, known := s.Keeper.Todos()
	if !known {
		return nil
	}
	todos := []page.Todo{}
	for _, one := range all {
		todos = append(todos, page.Todo(one))
	}
	return todos
}

// fileOf describes what is wrong with a file, in the words of the log.
func fileOf(name string, invalid *invalidFile) *page.File {
	if invalid == nil {
		return nil
	}
	file := &page.File{Name: filepath.Base(name), Since: invalid.since, Faults: []page.Fault{}}
	file.Held = invalid.held() != nil
	var problems config.Problems
	if !errors.As(invalid.err, &problems) {
		file.Faults = append(file.Faults, page.Fault{Message: invalid.err.Error()})
	}
	for _, problem := range problems {
		file.Faults = append(file.Faults, page.Fault{Line: problem.Line, Path: problem.Path, Message: problem.Message})
	}
	return file
}

// rules are those in force of any module, each once.
func (s subject) rules() []page.Rule {
	all, at := []page.Rule{}, map[string]int{}
	add := func(base rules.Base) *page.Rule {
		index, known := at[base.Name]
		if !known {
			index = len(all)
			at[base.Name] = index
			all = append(all, page.Rule{Name: base.Name, Suspended: base.Suspended, Missing: s.Sync.MissingSource(base)})
		}
		return &all[index]
	}
	for _, rule := range s.Reloader.in.Sync.Load().All() {
		add(rule.Base).Syncs = true
	}
	for _, rule := range s.Reloader.in.Protect.Load().All() {
		standing, known := s.Protect.Status(rule.Name)
		showProtection(add(rule.Base), rule.Mode, standing, known)
	}
	for _, rule := range s.Reloader.in.Reload.Load().All() {
		add(rule.Base)
	}
	return all
}

// showProtection says on rule how it protects; known is false where nothing was
// tried.
func showProtection(rule *page.Rule, mode protectspec.Mode, standing prove.Status, known bool) {
	rule.Mode = string(mode)
	switch {
	case mode != protectspec.Enforce:
	case !known:
		rule.Proof = page.Untried
	case standing.Proven:
		rule.Proof, rule.Since = page.Proven, standing.Since
	default:
		rule.Proof, rule.Since, rule.Why = page.Unproven, standing.Since, standing.Why
	}
}

func waitOf(w track.Waiting) page.Wait {
	wait := page.Wait{Consumer: w.Consumer, Rule: w.Rule, What: "waits", Why: whyWaiting(w), Since: w.Since, Until: w.Until}
	if w.Reason == reloaddecide.WaitMissing {
		wait.What = "held"
	}
	return wait
}

func whyWaiting(w track.Waiting) string {
	why := reasonToWait(w)
	if w.Reason == reloaddecide.WaitMissing {
		return why
	}
	return why + "; changed: " + strings.Join(w.Changed, ", ")
}

// reasonToWait is whyWaiting without the objects that changed.
func reasonToWait(w track.Waiting) string {
	switch w.Reason {
	case reloaddecide.WaitDebounce:
		return "its debounce has not ended, since more changes may follow"
	case reloaddecide.WaitOwner:
		return "a rollout of its own is under way, which may bring the change"
	case reloaddecide.WaitWindow:
		return "none of its windows is open"
	case reloaddecide.WaitBreaker:
		return "restarted as often within an hour as maxRestartsPerHour allows"
	case reloaddecide.WaitInterval:
		return "restarted less than its minInterval ago"
	case reloaddecide.WaitRollouts:
		return "as many rollouts are under way as reload.maxConcurrentRollouts allows, in all or in its namespace"
	case reloaddecide.WaitMissing:
		return "its pods could not start, or would read nothing of what changed; missing: " + strings.Join(w.Missing, ", ")
	case reloaddecide.WaitReverted:
		return w.By.String()
	}
	return string(w.Reason)
}
