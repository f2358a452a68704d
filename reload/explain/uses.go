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

// Use is one object that one consumer consumes in one mode, and what a change of
// it means.
type Use struct {
	Consumer string    `json:"consumer"`
	Object   string    `json:"object"`
	Mode     refs.Mode `json:"mode"`
	Keys     []string  `json:"keys,omitempty"`
	Optional bool      `json:"optional,omitempty"`
	// Containers are those that consume it; none for what the node reads, or the
	// owner lists.
	Containers []string `json:"containers,omitempty"`
	// Through is the ServiceAccount that has a pull secret put into the pods.
	Through string `json:"through,omitempty"`
	// Rule and OptIn are who wants something done; see Input.
	Rule  string    `json:"rule,omitempty"`
	OptIn spec.Tool `json:"optIn,omitempty"`
	// OnChange is what is done about a change, and Reason why.
	OnChange spec.Step   `json:"onChange"`
	Reason   spec.Reason `json:"reason"`
	// Status of a workload whose volumes are refreshed is that of its running
	// pods, of which there are Pods, and PodsBehind are behind.
	Standing   decide.Status `json:"standing"`
	Pods       int           `json:"pods,omitempty"`
	PodsBehind int           `json:"podsBehind,omitempty"`
	// Kept is why pods that are behind a restart are not replaced, where that is
	// known.
	Kept health.KeptReason `json:"kept,omitempty"`
	// ChangedAt is when the data was last written, where that is known.
	ChangedAt *time.Time `json:"changedAt,omitempty"`
}

// Consumers says who consumes ref, or any of its clones: workloads, the pods that
// read it by no pod template of theirs, and targets. It counts the clones.
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
	return uses, clones, look.failed
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
	workloads := l.consumers.WorkloadsUsing(ref, l.settings)
	for _, w := range append(workloads, l.consumers.Optional.ByIndex(gather.ByTarget, ref.Namespace)...) {
		add(l.usesOfWorkload(w))
	}
	for _, p := range l.consumers.PodsUsing(ref) {
		if !l.fromTemplate(p, ref) {
			add(l.usesOfPod(p, l.consumedByPod(p)))
		}
	}
	add(l.usesOfFields(ref))
	return uses
}

// fromTemplate reports whether pod consumes ref because the pod template does that
// it was made from. Admission adds to pods what it likes.
func (l *observation) fromTemplate(pod *workload.Pod, ref object.Ref) bool {
	owner, owned := l.consumers.OwnerOf(pod)
	return owned && !owner.NoTemplate && slices.Contains(gather.IndexValues(owner.Namespace, owner.References), ref.String())
}

// usesOfWorkload is what w itself consumes. Which data it runs is on record with
// the workload that is stamped for it.
func (l *observation) usesOfWorkload(w *workload.Workload) []Use {
	top := l.consumers.RootOwner(w).Root
	consumed := l.consumedBy(w)
	uses := make([]Use, 0, len(consumed))
	for _, c := range consumed {
		stored := top.Annotations[mark.Baseline]
		c = decide.AsRecorded(l.hasher(), top.UID, stored, c)
		use := newUse(w.Key(), c)
		use.Standing = decide.StatusOf(l.hasher(), top.UID, stored, c)
		switch {
		case use.OnChange == spec.StepRefresh:
			l.countPods(w, c, &use)
		case use.Standing == decide.Current:
			l.rollingOut(w, top, c, &use)
		}
		uses = append(uses, use)
	}
	return uses
}

func (l *observation) usesOfPod(p *workload.Pod, consumed []decide.Input) []Use {
	uses := make([]Use, 0, len(consumed))
	for _, c := range consumed {
		use := newUse(p.Key(), c)
		use.Standing = decide.PodStatusOf(l.hasher(), p, p.Annotations[mark.RefreshedFor], c, l.now)
		if use.OnChange == spec.StepRestart && !l.fromTemplate(p, c.Object) {
			use.OnChange, use.Reason = spec.StepNothing, spec.ReasonNoTemplate
		}
		uses = append(uses, use)
	}
	return uses
}

// rollingOut sets what the restart of top, which stands for w, has left to do for c.
func (l *observation) rollingOut(w, top *workload.Workload, c decide.Input, use *Use) {
	is := l.rolloutState(w, top, c.ChangedAt)
	if is == nil || is.PodsBehind == 0 {
		return
	}
	use.Standing, use.Pods, use.PodsBehind, use.Kept = decide.RollingOut, is.Pods, is.PodsBehind, is.Kept
}

// StateOf says how far the restart of top is with the pods of w.
func (l *observation) rolloutState(w, top *workload.Workload, changedAt time.Time) *health.RolloutState {
	if top.IsTarget() {
		return nil
	}
	return health.StateOf(l.consumers.EffectiveRollout(top), l.consumers.PodsOf(w), changedAt, l.now)
}

// countPods sets what the pods of w show of c.
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
		if use.Standing != decide.Behind {
			use.Standing = found
		}
	}
}

func newUse(k kinds.Key, c decide.Input) Use {
	outcome := c.OnChange()
	use := Use{
		Consumer: k.String(), Object: c.Object.String(), Mode: c.Mode, Keys: c.Keys, Optional: c.Optional, Containers: c.Containers,
		Through: c.Through, Rule: c.Rule, OptIn: c.OptIn, OnChange: outcome.Step, Reason: outcome.Reason,
	}
	if !c.ChangedAt.IsZero() {
		use.ChangedAt = &c.ChangedAt
	}
	return use
}
