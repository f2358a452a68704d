package app

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/page"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect"
	"github.com/headwater-k8s/headwater/protect/prove"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/reload"
	reloaddecide "github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/sync"
)

// conditions report to the page the state of everything but clones.
type conditions struct {
	reloader *reloader
	sync     *sync.View
	protect  *protect.View
	reload   *reload.View
	// namespaces counts those of the cluster.
	namespaces func() int
}

// Conditions implements page.Subject.
func (c conditions) Conditions() page.Conditions {
	var waits []page.Wait
	for _, waiting := range c.reload.Waiting() {
		waits = append(waits, waitOf(waiting))
	}
	return page.Conditions{
		File: fileOf(c.reloader.settings.ConfigFile, c.reloader.invalid.Load()), Rules: c.rules(), Waits: page.NewWaits(waits),
		Namespaces: c.namespaces(), Refusals: c.protect.Engine() == protectspec.EngineWebhook,
	}
}

// fileOf describes what is wrong with a file, in the words of the log.
func fileOf(name string, invalid *invalidFile) *page.File {
	if invalid == nil {
		return nil
	}
	file := &page.File{Name: filepath.Base(name), Since: invalid.since, Faults: []page.Fault{}}
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
func (c conditions) rules() []page.Rule {
	all, at := []page.Rule{}, map[string]int{}
	add := func(base rules.Base) *page.Rule {
		index, known := at[base.Name]
		if !known {
			index = len(all)
			at[base.Name] = index
			all = append(all, page.Rule{Name: base.Name, Missing: c.sync.MissingSource(base)})
		}
		return &all[index]
	}
	for _, rule := range c.reloader.sync.Load().All() {
		add(rule.Base).Syncs = true
	}
	for _, rule := range c.reloader.protect.Load().All() {
		standing, known := c.protect.Status(rule.Name)
		showProtection(add(rule.Base), rule.Mode, standing, known)
	}
	for _, rule := range c.reloader.reload.Load().All() {
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
	case reloaddecide.WaitOwner:
		return "a rollout of its own is under way, which may bring the change"
	case reloaddecide.WaitWindow:
		return "no window of reload.windows is open"
	case reloaddecide.WaitBreaker:
		return "restarted as often within an hour as maxRestartsPerHour allows"
	case reloaddecide.WaitInterval:
		return "restarted less than its minInterval ago"
	case reloaddecide.WaitRollouts:
		return "as many rollouts are under way as reload.maxConcurrentRollouts allows, in all or in its namespace"
	case reloaddecide.WaitMissing:
		return "its pods could not start; missing: " + strings.Join(w.Missing, ", ")
	}
	return string(w.Reason)
}
