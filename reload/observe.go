package reload

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Use is one object that one consumer consumes in one mode, and what a change of
// it means.
type Use struct {
	Consumer string   `json:"consumer"`
	Object   string   `json:"object"`
	Mode     Mode     `json:"mode"`
	Keys     []string `json:"keys,omitempty"`
	Optional bool     `json:"optional,omitempty"`
	// Containers are those that consume it; none for what the node reads, or the
	// owner lists.
	Containers []string `json:"containers,omitempty"`
	// Through is the ServiceAccount that has a pull secret put into the pods.
	Through string `json:"through,omitempty"`
	// Rule and OptIn are who wants something done; see Consumed.
	Rule  string `json:"rule,omitempty"`
	OptIn Tool   `json:"optIn,omitempty"`
	// OnChange is what is done about a change, and Reason why.
	OnChange Step   `json:"onChange"`
	Reason   Reason `json:"reason"`
	// Standing of a workload whose volumes are refreshed is that of its running
	// pods, of which there are Pods, and PodsBehind are behind.
	Standing   Standing `json:"standing"`
	Pods       int      `json:"pods,omitempty"`
	PodsBehind int      `json:"podsBehind,omitempty"`
	// ChangedAt is when the data was last written, where that is known.
	ChangedAt *time.Time `json:"changedAt,omitempty"`
}

// Explanation is what a workload or pod consumes, and what would be done about
// it now.
type Explanation struct {
	Consumer    string     `json:"consumer"`
	RestartedAt *time.Time `json:"restartedAt,omitempty"`
	Step        Step       `json:"step"`
	Reason      Reason     `json:"reason"`
	// Stamped is the workload that is restarted in its place: its topmost owner,
	// or the one whose pod template it runs.
	Stamped string `json:"stamped,omitempty"`
	// Waits is why a restart that is due does not begin, and WaitsUntil until when.
	// For how many others are rolled out, only the service knows.
	Waits      WaitReason `json:"waits,omitempty"`
	WaitsUntil *time.Time `json:"waitsUntil,omitempty"`
	// Objects are those that changed, or that are missing.
	Objects []string `json:"objects,omitempty"`
	Uses    []Use    `json:"uses"`
	// Ignored are annotations that mean nothing, and why.
	Ignored []string `json:"ignored,omitempty"`
}

// Observer looks at consumers from outside the controller, and judges them by
// its decisions.
type Observer struct {
	consumers *consumers
	fields    *kube.Optional[*SetTarget]
	caches    *kube.Caches
	rules     *rules.Live[Rule]
	settings  Settings
	kinds     func() []kube.OptionalKind[*Workload]
	key       *kube.DigestKey
	reader    kube.Reader
}

// NewObserver adds the caches of consumers to caches. ServiceAccounts it reads
// once, now.
func NewObserver(ctx context.Context, live *rules.Live[Rule], settings Settings, clients *kube.Clients, caches *kube.Caches, key *kube.DigestKey, log *zap.Logger) (*Observer, error) {
	accounts, err := readAccounts(ctx, clients.Typed)
	if err != nil {
		return nil, err
	}
	kinds := customKinds(func() []WorkloadKind { return settings.Workloads }, live, accounts.visible)
	consumers, err := newConsumers(clients, caches, kube.Always, kinds, nil, accounts.visible, log)
	if err != nil {
		return nil, err
	}
	fields := newSetTargets(clients, nil, live, key, log)
	caches.Add(fields, kube.Always)
	return &Observer{
		consumers: consumers, fields: fields, caches: caches, rules: live, settings: settings, kinds: kinds, key: key, reader: kube.NewReader(clients),
	}, nil
}

// Unread names the kinds that the API server serves and the caller may not read.
func (o *Observer) Unread() []Kind {
	var kinds []Kind
	for _, kind := range o.kinds() {
		if o.consumers.optional.Standing(kind.GroupKind()) == kube.StandingRefused {
			kinds = append(kinds, KindOf(kind.GroupKind()))
		}
	}
	for _, kind := range setKinds(o.rules.Load(), o.key) {
		if o.fields.Standing(kind.GroupKind()) == kube.StandingRefused {
			kinds = append(kinds, KindOf(kind.GroupKind()))
		}
	}
	return kinds
}

// observation is one look, at one time.
type observation struct {
	*Observer
	gatherer *gatherer
	now      time.Time
	failed   error
}

func (o *Observer) observe(ctx context.Context, now time.Time) (*observation, error) {
	hasher, err := o.key.Hasher()
	if err != nil {
		return nil, err
	}
	look := &observation{Observer: o, now: now}
	look.gatherer = &gatherer{caches: o.caches, rules: o.rules.Load(), hasher: hasher, read: look.reading(ctx)}
	return look, nil
}

// reading reads each object once, whatever its resourceVersion.
func (l *observation) reading(ctx context.Context) func(object.Ref, string) *object.Digested {
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

// Explain says what the consumer of that name consumes; found is false when
// there is none. It reads what the caches do not hold.
func (o *Observer) Explain(ctx context.Context, kind Kind, namespace, name string, now time.Time) (e Explanation, found bool, err error) {
	look, err := o.observe(ctx, now)
	if err != nil {
		return e, false, err
	}
	if kind == KindPod {
		pod, found := o.consumers.pods.Get(namespace, name)
		if !found {
			return e, false, nil
		}
		e = look.explainPod(pod)
		return e, true, look.failed
	}
	workload, found := o.consumers.workload(key{kind, namespace, name})
	if !found {
		return e, false, nil
	}
	e = look.explainWorkload(workload)
	return e, true, look.failed
}

// Consumers says who consumes ref, or any of its clones: workloads, the pods that
// read it by no pod template of theirs, and targets. It counts the clones.
func (o *Observer) Consumers(ctx context.Context, ref object.Ref, now time.Time) (uses []Use, clones int, err error) {
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
	workloads := l.consumers.workloadsUsing(ref, l.settings)
	for _, w := range append(workloads, l.consumers.optional.ByIndex(byTarget, ref.Namespace)...) {
		add(l.usesOfWorkload(w))
	}
	for _, p := range l.consumers.podsUsing(ref) {
		if !l.fromTemplate(p, ref) {
			add(l.usesOfPod(p, l.consumedByPod(p)))
		}
	}
	add(l.usesOfFields(ref))
	return uses
}

// fromTemplate reports whether pod consumes ref because the pod template does that
// it was made from. Admission adds to pods what it likes.
func (l *observation) fromTemplate(pod *Pod, ref object.Ref) bool {
	owner, owned := l.consumers.ownerOf(pod)
	return owned && !owner.Bare && slices.Contains(indexValues(owner.Namespace, owner.References), ref.String())
}

func (l *observation) hasher() *digest.Hasher { return l.gatherer.hasher }

func (l *observation) consumedBy(workloads ...*Workload) []Consumed {
	return l.gatherer.family(l.consumers, workloads, l.settings)
}

func (l *observation) consumedByPod(p *Pod) []Consumed {
	return l.gatherer.gather(p.Namespace, p.References, l.consumers.wishesForPod(p, l.settings))
}

func (l *observation) explainWorkload(w *Workload) Explanation {
	decision, stamped := l.decide(w)
	wait := Wait{}
	if decision.Step == StepRestart {
		decision, wait = l.pace(w, decision)
	}
	e := Explanation{
		Consumer: w.key().String(), Step: decision.Step, Reason: decision.Reason, Stamped: stamped,
		Waits: wait.Reason, Objects: append(decision.Changed, decision.Missing...), Uses: []Use{},
	}
	if !wait.Until.IsZero() {
		e.WaitsUntil = &wait.Until
	}
	for _, member := range l.consumers.family(w) {
		e.Uses = append(e.Uses, l.usesOfWorkload(member)...)
	}
	if at := mark.ParseTime(w.Annotations[mark.RestartedAt]); !at.IsZero() {
		e.RestartedAt = &at
	}
	of, faults := wishesOf(&w.ObjectMeta, w.foreign, l.settings)
	for _, fault := range append(faults, l.gatherer.tooMany(w.Namespace, of)...) {
		e.Ignored = append(e.Ignored, fault.annotation+": "+fault.problem)
	}
	for _, tool := range w.foreign.unheard(l.settings) {
		e.Ignored = append(e.Ignored, "annotations of "+string(tool)+": reload.compatibility does not name it")
	}
	return e
}

// decide decides about w; stamped names the workload that is restarted in its
// place, if there is one.
func (l *observation) decide(w *Workload) (decision Decision, stamped string) {
	stored := w.Annotations[mark.Baseline]
	if top := l.consumers.topOf(w).top; top != w {
		return leave(stored), top.key().String()
	}
	if w.Borrows != nil {
		stamped = w.Borrows.String()
	}
	return decideWorkload(l.hasher(), w.UID, stored, l.consumedBy(l.consumers.family(w)...)), stamped
}

// pace says whether what is due waits, by what is written on objects. When the
// pod template was written is not, so that pods of the second in which the data
// was written count as older.
func (l *observation) pace(w *Workload, due Decision) (Decision, Wait) {
	if w.Kind == KindCronJob {
		return due, Wait{} // its stamp replaces no pod
	}
	delivery := l.consumers.delivery(w, due.Data, w.RecordedAt, "", l.now)
	if delivery == Delivered {
		return due.delivered(), Wait{}
	}
	restarts := mark.ParseRestarts(w.Annotations[mark.RestartedAt], w.Annotations[mark.RestartedBefore])
	return due, due.delay(delivery, compileWindows(l.settings.Windows), restarts, l.now)
}

func (l *observation) explainPod(p *Pod) Explanation {
	consumed := l.consumedByPod(p)
	decision := decidePod(l.hasher(), p, p.Annotations[mark.RefreshedFor], consumed, l.now)
	return Explanation{
		Consumer: p.key().String(), Step: decision.Step, Reason: decision.Reason,
		Objects: decision.Changed, Uses: l.usesOfPod(p, consumed),
	}
}

// usesOfWorkload is what w itself consumes. Which data it runs is on record with
// the workload that is stamped for it.
func (l *observation) usesOfWorkload(w *Workload) []Use {
	top := l.consumers.topOf(w).top
	consumed := l.consumedBy(w)
	uses := make([]Use, 0, len(consumed))
	for _, c := range consumed {
		stored := top.Annotations[mark.Baseline]
		c = asRecorded(l.hasher(), top.UID, stored, c)
		use := newUse(w.key(), c)
		use.Standing = standing(l.hasher(), top.UID, stored, c)
		if use.OnChange == StepRefresh {
			l.countPods(w, c, &use)
		}
		uses = append(uses, use)
	}
	return uses
}

func (l *observation) usesOfPod(p *Pod, consumed []Consumed) []Use {
	uses := make([]Use, 0, len(consumed))
	for _, c := range consumed {
		use := newUse(p.key(), c)
		use.Standing = podStanding(l.hasher(), p, p.Annotations[mark.RefreshedFor], c, l.now)
		if use.OnChange == StepRestart && !l.fromTemplate(p, c.Object) {
			use.OnChange, use.Reason = StepNothing, ReasonNoTemplate
		}
		uses = append(uses, use)
	}
	return uses
}

// countPods sets what the pods of w show of c.
func (l *observation) countPods(w *Workload, c Consumed, use *Use) {
	for _, p := range l.consumers.podsUsing(c.Object) {
		if owner, owned := l.consumers.ownerOf(p); !owned || owner.key() != w.key() || !p.running() {
			continue
		}
		use.Pods++
		found := podStanding(l.hasher(), p, p.Annotations[mark.RefreshedFor], c, l.now)
		if found == Behind {
			use.PodsBehind++
		}
		if use.Standing != Behind {
			use.Standing = found
		}
	}
}

func newUse(k key, c Consumed) Use {
	outcome := c.onChange()
	use := Use{
		Consumer: k.String(), Object: c.Object.String(), Mode: c.Mode, Keys: c.Keys, Optional: c.Optional, Containers: c.Containers,
		Through: c.Through, Rule: c.Rule, OptIn: c.OptIn, OnChange: outcome.Step, Reason: outcome.Reason,
	}
	if !c.ChangedAt.IsZero() {
		use.ChangedAt = &c.ChangedAt
	}
	return use
}
