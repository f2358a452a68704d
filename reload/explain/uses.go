package explain

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Use is one object that one consumer consumes in one mode, and what a change of it
// means.
type Use struct {
	Consumer string    `json:"consumer"`
	Object   string    `json:"object"`
	Mode     refs.Mode `json:"mode"`
	Keys     []string  `json:"keys,omitempty"`
	Optional bool      `json:"optional,omitempty"`
	// Containers are those that consume it. They are empty for objects that the node
	// reads or the owner lists.
	Containers []string `json:"containers,omitempty"`
	// Through is the ServiceAccount that adds a pull secret to the pods.
	Through string `json:"through,omitempty"`
	// Rule and OptIn say why something is done, and ByOwner whose word counts; see
	// decide.Input.
	Rule    string    `json:"rule,omitempty"`
	OptIn   spec.Tool `json:"optIn,omitempty"`
	ByOwner bool      `json:"byOwner,omitempty"`
	// OnChange is what a change causes, and Reason is why.
	OnChange spec.Step   `json:"onChange"`
	Reason   spec.Reason `json:"reason"`
	// Status of a workload whose volumes are refreshed is that of its running pods.
	// Pods counts them, and PodsBehind those that are behind.
	Status     decide.Status `json:"standing"`
	Pods       int           `json:"pods,omitempty"`
	PodsBehind int           `json:"podsBehind,omitempty"`
	// Kept is why pods that are behind a restart are not replaced, if known.
	Kept health.KeptReason `json:"kept,omitempty"`
	// ChangedAt is when the data was last written, if known.
	ChangedAt *time.Time `json:"changedAt,omitempty"`
}

// Consumers returns the consumers of ref and of its clones: workloads, pods that read
// it through no pod template, and targets. clones is the number of clones.
func (o *Explainer) Consumers(ctx context.Context, ref object.Ref, now time.Time) (uses []Use, clones int, err error) {
	look, err := o.observe(ctx, now)
	if err != nil {
		return nil, 0, err
	}
	uses = look.usesOf(ref)
	for _, clone := range o.caches.Clones[ref.Kind].List() {
		if marks, readable := mark.Of(clone); readable && marks.Source == ref {
			clones++
			uses = append(uses, look.usesOf(object.Ref{Kind: ref.Kind, Namespace: clone.Namespace, Name: clone.Name})...)
		}
	}
	slices.SortStableFunc(uses, func(a, b Use) int { return strings.Compare(a.Consumer, b.Consumer) })
	o.hideRules(uses)
	return uses, clones, look.failed
}

// CountReaders counts the consumers of ref, which is a clone or will be one, as a delivery
// does, and how many of them are idle: only a person or a schedule makes them run a change.
func (o *Explainer) CountReaders(ctx context.Context, ref object.Ref, now time.Time) (readers, idle int, err error) {
	look, err := o.observe(ctx, now)
	if err != nil {
		return 0, 0, err
	}
	clone, exists := o.caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name)
	if !exists {
		clone = &object.Digested{Common: &object.Common{Kind: ref.Kind}, Namespace: ref.Namespace, Name: ref.Name}
	}
	for _, one := range look.gatherer.ReadersOf(clone, nil, false) {
		if readers++; one.IsIdle() {
			idle++
		}
	}
	return readers, idle, look.failed
}

func (l *observation) usesOf(ref object.Ref) []Use {
	uses := []Use{}
	add := func(all []Use) {
		for _, use := range all {
			if use.Object == ref.String() {
				uses = append(uses, use)
			}
		}
	}
	workloads := l.consumers.WorkloadsUsing(ref, l.settings.Load().Settings)
	for _, w := range append(workloads, l.consumers.Optional.ByIndex(gather.ByTarget, ref.Namespace)...) {
		add(l.usesOfWorkload(w))
	}
	for _, p := range l.consumers.PodsUsing(ref) {
		if !l.consumers.FromTemplate(p, ref) {
			add(l.usesOfPod(p, l.gatherer.PodInputs(p)))
		}
	}
	add(l.usesOfFields(ref))
	return uses
}

// usesOfWorkload returns what w itself consumes. The workload that is restarted for it
// has the baseline.
func (l *observation) usesOfWorkload(w *workload.Workload) []Use {
	top := l.consumers.RootOwner(w).Root
	inputs := l.gatherer.Inputs([]*workload.Workload{w}, true)
	uses := make([]Use, 0, len(inputs))
	for _, c := range inputs {
		stored := top.Annotations[mark.Baseline]
		c = decide.AsRecorded(l.hasher(), top.UID, stored, c)
		use := newUse(w.Key(), c)
		use.Status = decide.StatusOf(l.hasher(), top.UID, stored, c)
		if use.Status == decide.Unknown && use.OnChange == spec.StepRestart && restartedWith(top, c) {
			use.Status = decide.Current
		}
		switch {
		case use.OnChange == spec.StepRefresh:
			l.countPods(w, c, &use)
		case use.Status == decide.Current:
			l.rollingOut(w, top, c, &use)
		}
		uses = append(uses, use)
	}
	return uses
}

// restartedWith reports whether the last restart of w, which nobody reverted, was for the
// version of the object that exists now: that needs no key of digests.
func restartedWith(w *workload.Workload, c decide.Input) bool {
	because, _ := mark.ParseBecause(w.Annotations[mark.RestartedBecause])
	return c.Version != "" && because.Stamp != 0 && workload.Stamp(because.Stamp) == w.Stamp && slices.Contains(because.Objects, mark.ObjectVersion{Kind: c.Object.Kind, Name: c.Object.Name, Version: c.Version})
}

func (l *observation) usesOfPod(p *workload.Pod, inputs []decide.Input) []Use {
	uses := make([]Use, 0, len(inputs))
	for _, c := range inputs {
		use := newUse(p.Key(), c)
		use.Status = decide.PodStatusOf(l.hasher(), p, p.Annotations[mark.RefreshedFor], c, l.now)
		if use.OnChange == spec.StepRestart && !l.consumers.FromTemplate(p, c.Object) {
			use.OnChange, use.Reason = spec.StepNothing, spec.ReasonNoTemplate
		}
		uses = append(uses, use)
	}
	return uses
}

// rollingOut sets the state of a restart that has not replaced all pods of w.
func (l *observation) rollingOut(w, top *workload.Workload, c decide.Input, use *Use) {
	is := l.rolloutState(w, top, c.ChangedAt)
	if is == nil || is.PodsBehind == 0 {
		return
	}
	use.Status, use.Pods, use.PodsBehind, use.Kept = decide.RollingOut, is.Pods, is.PodsBehind, is.Kept
}

// rolloutState returns the state of the restart of top for the pods of w.
func (l *observation) rolloutState(w, top *workload.Workload, changedAt time.Time) *health.RolloutState {
	if top.IsTarget() {
		return nil
	}
	return health.StateOf(l.consumers.EffectiveRollout(top), l.consumers.PodsOf(w), changedAt, l.now)
}

// countPods sets the status of the pods of w.
func (l *observation) countPods(w *workload.Workload, c decide.Input, use *Use) {
	for _, p := range l.consumers.PodsUsing(c.Object) {
		if owner, owned := l.consumers.OwnerOf(p); !owned || owner.Key() != w.Key() || !p.Running() {
			continue
		}
		use.Pods++
		found := decide.PodStatusOf(l.hasher(), p, p.Annotations[mark.RefreshedFor], c, l.now)
		if found == decide.Behind {
			use.PodsBehind++
		}
		if use.Status != decide.Behind {
			use.Status = found
		}
	}
}

func newUse(k kinds.Key, c decide.Input) Use {
	outcome := c.OnChange()
	use := Use{
		Consumer: k.String(), Object: c.Object.String(), Mode: c.Mode, Keys: c.Keys, Optional: c.Optional, Containers: c.Containers,
		Through: c.Through, Rule: c.Rule, OptIn: c.OptIn, ByOwner: c.ByOwner, OnChange: outcome.Step, Reason: outcome.Reason,
	}
	if !c.ChangedAt.IsZero() {
		use.ChangedAt = &c.ChangedAt
	}
	return use
}
