package reload

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

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
