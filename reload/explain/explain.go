package explain

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/fields"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Explanation is what a workload or pod consumes, and what Headwater would do about it
// now.
type Explanation struct {
	Consumer    string     `json:"consumer"`
	RestartedAt *time.Time `json:"restartedAt,omitempty"`
	// Because is why, as an annotation of the workload says.
	Because *mark.Because `json:"restartedBecause,omitempty"`
	// Rollout is the state of that restart.
	Rollout *health.RolloutState `json:"rollout,omitempty"`
	Step    spec.Step            `json:"step"`
	Reason  spec.Reason          `json:"reason"`
	// Stamped is the workload that is restarted in its place: its topmost owner, or the
	// one whose pod template it uses.
	Stamped string `json:"stamped,omitempty"`
	// Owner is the topmost known controller that is not restarted in its place, and
	// OwnerUnread true if the caller may not read its kind.
	Owner       string `json:"owner,omitempty"`
	OwnerUnread bool   `json:"ownerUnread,omitempty"`
	// Waits is why a due restart does not start, and WaitsUntil is until when.
	Waits      decide.WaitReason `json:"waits,omitempty"`
	WaitsUntil *time.Time        `json:"waitsUntil,omitempty"`
	// RevertedBy is who reverted the restart that is due; nil if nobody did.
	RevertedBy *decide.Reverter `json:"revertedBy,omitempty"`
	// Objects are the changed or missing objects.
	Objects []string `json:"objects,omitempty"`
	Uses    []Use    `json:"uses"`
	// Ignored lists annotations without effect, and why.
	Ignored []string `json:"ignored,omitempty"`
}

// Explainer explains consumers from outside the controller, by the same decisions.
type Explainer struct {
	// WithoutRules is true if the rules and settings are unknown, and WithoutKey if the
	// key of baselines is. The caller may set them.
	WithoutRules, WithoutKey bool

	lacks     bool // some resource may not be read
	consumers *gather.Consumers
	fields    *informers.Optional[*fields.SetTarget]
	caches    *informers.Caches
	rules     *rules.Live[spec.Rule]
	settings  *live.Value[*spec.Compiled]
	kinds     func() []informers.OptionalKind[*workload.Workload]
	key       *digestkey.Key
	reader    kube.Reader
}

// NewExplainer adds the caches of consumers to caches. It lists all ServiceAccounts
// once.
func NewExplainer(ctx context.Context, inForce *rules.Live[spec.Rule], settings spec.Settings, clients *kube.Clients, caches *informers.Caches, key *digestkey.Key, log *zap.Logger) (*Explainer, error) {
	accounts, err := readAccounts(ctx, clients)
	if err != nil {
		return nil, err
	}
	kinds := gather.CustomKinds(func() []kinds.WorkloadKind { return settings.Workloads }, inForce, accounts.visible)
	consumers, err := gather.NewConsumers(clients, caches, informers.Always, kinds, nil, accounts.visible, log)
	if err != nil {
		return nil, err
	}
	sections := spec.CompileSections(settings.Namespaces)
	consumers.Sections = func() []spec.Section { return sections }
	fields := fields.NewSetTargets(clients, nil, inForce, key, log)
	caches.Add(fields, informers.Always)
	limits := settings
	limits.Default()
	compiled := limits.Compile()
	compiled.Settings = settings // of which the caller may know none
	return &Explainer{
		consumers: consumers, fields: fields, caches: caches, rules: inForce, settings: live.New(compiled),
		kinds: kinds, key: key, reader: kube.NewReader(clients), lacks: len(clients.Scope.Lacking) > 0,
	}, nil
}

// Unread returns the kinds that the API server serves but the caller may not read.
func (o *Explainer) Unread() []kinds.Kind {
	var found []kinds.Kind
	for _, kind := range o.kinds() {
		if o.consumers.Optional.Status(kind.GroupKind()) == informers.KindRefused {
			found = append(found, kinds.Of(kind.GroupKind()))
		}
	}
	for _, kind := range fields.SetKinds(o.rules.Load(), o.key) {
		if o.fields.Status(kind.GroupKind()) == informers.KindRefused {
			found = append(found, kinds.Of(kind.GroupKind()))
		}
	}
	return found
}

// observation is one explanation at one time.
type observation struct {
	*Explainer
	gatherer *gather.Gatherer
	now      time.Time
	failed   error
	// rollouts are those in progress, counted on first use.
	rollouts *track.Rollouts
}

func (o *Explainer) observe(ctx context.Context, now time.Time) (*observation, error) {
	hasher, err := o.key.Hasher()
	if err != nil {
		return nil, err
	}
	look := &observation{Explainer: o, now: now}
	look.gatherer = &gather.Gatherer{
		Consumers: o.consumers, Caches: o.caches, Rules: o.rules.Load(), Settings: o.settings.Load(), Hasher: hasher, Read: look.readOnce(ctx),
		Room: look.hasRoom, Installed: o.key.InstalledAt(), Now: now,
	}
	return look, nil
}

// hasRoom counts the rollouts in progress like a new leader does.
func (l *observation) hasRoom(k kinds.Key) bool {
	if l.rollouts == nil {
		l.rollouts = track.NewRollouts(l.settings, nil, func() time.Time { return l.now })
		for _, one := range l.consumers.AllWorkloads() {
			if one.Rollout != nil && one.TemplateFrom == nil {
				l.rollouts.Observe(one.Key(), l.consumers.EffectiveRollout(one).CountsUntil(), one.ResourceVersion)
			}
		}
		l.rollouts.Lead()
	}
	return l.rollouts.HasRoom(k)
}

// readOnce returns a function that reads each object once, whatever its
// resourceVersion.
func (l *observation) readOnce(ctx context.Context) func(object.Ref, string) *object.Digested {
	read := map[object.Ref]*object.Digested{}
	return func(ref object.Ref, _ string) *object.Digested {
		if known, done := read[ref]; done {
			return known
		}
		found, err := l.reader.Describe(ctx, ref, l.key)
		if err != nil && l.failed == nil {
			l.failed = err
		}
		read[ref] = found
		return found
	}
}

// Explain explains the named consumer; found is false if it does not exist. It reads
// objects that the caches do not hold.
func (o *Explainer) Explain(ctx context.Context, kind kinds.Kind, namespace, name string, now time.Time) (e Explanation, found bool, err error) {
	look, err := o.observe(ctx, now)
	if err != nil {
		return e, false, err
	}
	if kind == kinds.KindPod {
		pod, found := o.consumers.Pods.Get(namespace, name)
		if !found {
			return e, false, nil
		}
		e = o.hideUnread(look.explainPod(pod))
		return e, true, look.failed
	}
	workload, found := o.consumers.Workload(kinds.Key{Kind: kind, Namespace: namespace, Name: name})
	if !found {
		return e, false, nil
	}
	e = o.hideUnread(look.explainWorkload(workload))
	return e, true, look.failed
}

func (l *observation) hasher() *digest.Hasher { return l.gatherer.Hasher }

func (l *observation) explainWorkload(w *workload.Workload) Explanation {
	decision := decide.Workload(l.gatherer.Gather(w))
	var wait decide.Wait
	if decision.Step == spec.StepRestart {
		wait = decision.Wait
	}
	e := Explanation{
		Consumer: w.Key().String(), Step: decision.Step, Reason: decision.Reason, Stamped: l.stampedFor(w),
		Waits: wait.Reason, Objects: append(decision.Changed, decision.Missing...), Uses: []Use{},
	}
	if !wait.Until.IsZero() {
		e.WaitsUntil = &wait.Until
	}
	if wait.Reason == decide.WaitReverted {
		e.RevertedBy = &wait.By
	}
	if root := l.consumers.RootOwner(w); root.Unsupported != nil {
		e.Owner, e.OwnerUnread = root.Unsupported.String(), root.Unread
	}
	for _, member := range l.consumers.StampedGroup(w) {
		e.Uses = append(e.Uses, l.usesOfWorkload(member)...)
	}
	if at := mark.ParseTime(w.Annotations[mark.RestartedAt]); !at.IsZero() {
		e.RestartedAt, e.Rollout = &at, l.rolloutState(w, w, time.Time{})
	}
	if because, says := mark.ParseBecause(w.Annotations[mark.RestartedBecause]); says {
		e.Because = &because
	}
	of, faults := optin.ReadPreferences(&w.ObjectMeta, w.ThirdParty, l.settings.Load().Settings)
	for _, fault := range slices.Concat(faults, l.gatherer.TooMany(w.Namespace, of), w.Unseen(of), w.Misspelt) {
		e.Ignored = append(e.Ignored, fault.Annotation+": "+fault.Problem)
	}
	for _, tool := range w.ThirdParty.DisabledTools(l.settings.Load().Settings) {
		if l.WithoutRules {
			break // the settings are in the same file
		}
		e.Ignored = append(e.Ignored, "annotations of "+string(tool)+": reload.compatibility does not name it")
	}
	return e
}

// stampedFor returns the workload that is restarted in place of w; empty if that is w
// itself.
func (l *observation) stampedFor(w *workload.Workload) string {
	if top := l.consumers.RootOwner(w).Root; top != w {
		return top.Key().String()
	}
	if w.TemplateFrom != nil {
		return w.TemplateFrom.String()
	}
	return ""
}

func (l *observation) explainPod(p *workload.Pod) Explanation {
	inputs := l.gatherer.PodInputs(p)
	decision := l.gatherer.Pod(p, inputs)
	return Explanation{
		Consumer: p.Key().String(), Step: decision.Step, Reason: decision.Reason,
		Objects: decision.Changed, Uses: l.usesOfPod(p, inputs),
	}
}
