package revisions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/admission"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/reload/health"
)

const (
	// workers is how many reports are written at once.
	workers = 8
	// settle is how long a clone waits for further changes of its consumers, so that a
	// rollout, which is many changes, is judged once in a while.
	settle = 100 * time.Millisecond
	// unreadDelay is when to look again at consumers that could not be read yet.
	unreadDelay = time.Second
	// knownInterval is how often a revision is written to while clones of it arrive.
	knownInterval = time.Second
	// pendingDelay is how long consumers may be pending before the first report says
	// so. Most are healthy by then, and cost one write.
	pendingDelay = 3 * time.Second
	// firstLook is how soon after a clone was written what fails cannot be its fault.
	firstLook = 5 * time.Second
)

// Found is what consumes a clone.
type Found struct {
	Consumers []health.Consumer
	// Unread is true if some consumers cannot be judged yet, because caches are not
	// synced.
	Unread bool
}

// Reporter keeps the reports on the clones of revisions that are being delivered. Its
// queue has two kinds of keys: clones, and objects that record revisions.
type Reporter struct {
	caches *informers.Caches
	view   View
	client metadata.Interface
	find   func(clone *object.Digested) (Found, error)
	wanted func(rule string) bool
	log    *zap.Logger
	now    func() time.Time

	queue *queue.Runner[object.Ref]
	clones
}

// Params are what a Reporter needs.
type Params struct {
	Clients *kube.Clients
	Caches  *informers.Caches
	View    View
	// Find returns the consumers of a clone.
	Find func(clone *object.Digested) (Found, error)
	// Wanted reports whether the rule of that name needs reports; see Reporter.Recheck.
	Wanted   func(rule string) bool
	Registry *prometheus.Registry
	Log      *zap.Logger
}

// NewReporter allocates a Reporter.
func NewReporter(p Params) *Reporter {
	r := &Reporter{
		caches: p.Caches, view: p.View, client: p.Clients.Metadata, find: p.Find, wanted: p.Wanted, log: p.Log.Named("revisions"), now: time.Now,
	}
	r.clear()
	r.queue = queue.New(queue.Options{Name: "reload-reports", Workers: workers, Log: r.log, Registry: p.Registry}, r.reconcile)
	return r
}

// Run reports until ctx ends. Without a delivery its cache stays empty, and it waits
// for the first one.
func (r *Reporter) Run(ctx context.Context) {
	r.clear()
	r.queue.Open()
	defer r.queue.Close()
	if err := r.caches.Follow(ctx, r.subscribe, r.queue.Run); err != nil {
		r.log.Error("cannot report the health of consumers", zap.Error(err))
	}
}

func (r *Reporter) subscribe() (all informers.Subscriptions, err error) {
	if err := r.view.onChange(r.revisionChanged, &all); err != nil {
		return all, err
	}
	for _, kind := range object.Kinds {
		if err := all.Add(r.caches.Clones[kind].OnChange(r.cloneChanged)); err != nil {
			return all, err
		}
	}
	return all, nil
}

// Changed makes the consumers in namespace be judged again soon. It costs nothing while
// no revision is being delivered to namespace.
func (r *Reporter) Changed(namespace string) {
	for _, ref := range r.in(namespace) {
		r.queue.FreshAfter(ref, settle)
	}
}

// Recheck starts or ends reports after a change of the rules.
func (r *Reporter) Recheck() {
	for _, kind := range object.Kinds {
		for _, revision := range r.view[kind].List() {
			r.revisionChanged(informers.Change[*Revision]{Old: revision, New: revision})
		}
	}
}

func (r *Reporter) revisionChanged(change informers.Change[*Revision]) {
	revision := change.Latest()
	if change.Deleted || !revision.underWay() || !r.wanted(revision.id.rule) {
		r.end(revision.id)
		return
	}
	if !r.begin(revision) {
		return
	}
	for _, clone := range r.caches.Clones[revision.kind].List() {
		if id, ok := idOf(clone); ok && id == revision.id && r.add(clone, id, r.now()) {
			r.queue.Fresh(clone.Ref())
		}
	}
}

// cloneChanged does nothing while nothing is being delivered: the start of a delivery
// finds the clones that the cache shows by then.
func (r *Reporter) cloneChanged(change informers.Change[*object.Digested]) {
	if r.none() {
		return
	}
	clone := change.Latest()
	if change.Deleted {
		r.recreatable(clone.Ref())
		return
	}
	id, ok := idOf(clone)
	if !ok || !r.add(clone, id, r.now()) {
		r.remove(clone.Ref())
		return
	}
	r.queue.Fresh(clone.Ref())
}

func (r *Reporter) reconcile(ctx context.Context, ref object.Ref) error {
	if revision, recorded := r.view[ref.Kind].Get(ref.Namespace, ref.Name); recorded {
		return r.publishKnown(ctx, revision)
	}
	clone, found := r.caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name)
	if !found || clone.IsTerminating() {
		r.recreatable(ref)
		return nil
	}
	id, ok := idOf(clone)
	one, tracked := r.get(ref)
	if !ok || !tracked || one.id != id {
		return nil
	}
	return r.reconcileClone(ctx, clone, one)
}

// reconcileClone looks at the consumers of clone, and writes the report if it differs.
func (r *Reporter) reconcileClone(ctx context.Context, clone *object.Digested, one tracked) error {
	ref, now := clone.Ref(), r.now()
	found, err := r.find(clone)
	if err != nil {
		return err
	}
	if found.Unread {
		r.queue.FreshAfter(ref, unreadDelay)
		return nil
	}
	before, reported := reportOn(clone, one.id)
	if one.lookedAt.IsZero() {
		one = r.lookFirst(clone, one, found.Consumers, now)
		r.look(ref, one)
	}
	report := before
	if len(found.Consumers) > 0 || reported {
		report = r.judge(ref, one, found.Consumers, now)
	}
	if wait := one.lookedAt.Add(pendingDelay).Sub(now); wait > 0 && !reported && report.Health == mark.ConsumersPending {
		r.queue.FreshAfter(ref, wait)
		return nil
	}
	switch report {
	case before:
		r.judged(ref, clone.ResourceVersion, reported)
		r.knownGrows(one.id)
		return nil
	case one.wrote:
		return nil // the cache will show it
	}
	return r.write(ctx, clone, report)
}

// judge returns the report on the consumers of the clone ref. It judges them again when
// passing time may change that.
func (r *Reporter) judge(ref object.Ref, one tracked, consumers []health.Consumer, now time.Time) mark.ConsumersReport {
	for i := range consumers {
		consumers[i].FailedBefore = slices.Contains(one.failedBefore, consumers[i].Name)
		consumers[i].Blamed = slices.Contains(one.blamed, consumers[i].Name)
	}
	report, again := health.JudgeConsumers(one.id.number, consumers, one.writtenAt, now)
	if !again.IsZero() {
		r.queue.FreshAfter(ref, max(0, again.Sub(now)))
	}
	return report
}

// reportOn returns the report on clone about the revision id, if there is one.
func reportOn(clone *object.Digested, id revisionID) (report mark.ConsumersReport, found bool) {
	report, ok := mark.ParseConsumersReport(clone.Annotations[mark.Consumers])
	if !ok || report.Revision != id.number {
		return mark.ConsumersReport{}, false
	}
	return report, true
}

func (r *Reporter) write(ctx context.Context, clone *object.Digested, report mark.ConsumersReport) error {
	err := r.annotate(ctx, clone.Ref(), clone.UID, mark.Consumers, report.String())
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // deleted or recreated: the cache will show it
		return nil
	case err != nil:
		return err
	}
	r.wrote(clone.Ref(), clone.ResourceVersion, report)
	r.log.Debug("reported on the consumers of a clone", zap.Stringer("clone", clone.Ref()), zap.Stringer("report", report))
	return nil
}

// publishKnown writes up to which version the clones of revision were judged. While
// clones arrive, it waits for more of them.
func (r *Reporter) publishKnown(ctx context.Context, revision *Revision) error {
	known, wait := r.known(revision, r.now())
	switch {
	case wait > 0:
		r.queue.FreshAfter(revision.ref(), wait)
		return nil
	case known == "":
		return nil
	}
	err := r.annotate(ctx, revision.ref(), revision.UID, mark.ConsumersKnown, known)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	case err != nil:
		return err
	}
	r.wroteKnown(revision.id, known, r.now())
	return nil
}

// knownGrows makes the revision id be written to soon.
func (r *Reporter) knownGrows(id revisionID) {
	if revision, delivered := r.revision(id); delivered {
		r.queue.FreshAfter(revision.ref(), settle)
	}
}

// annotate sets one annotation by a JSON merge patch. The UID is a precondition.
func (r *Reporter) annotate(ctx context.Context, ref object.Ref, uid types.UID, annotation, value string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, "annotations": map[string]string{annotation: value}}})
	if err != nil {
		return fmt.Errorf("annotate %s: %w", ref, err)
	}
	options := metav1.PatchOptions{FieldManager: mark.ReportManager}
	if _, err = r.client.Resource(resourceOf(ref.Kind)).Namespace(ref.Namespace).Patch(ctx, ref.Name, types.MergePatchType, body, options); err != nil {
		return fmt.Errorf("report the health of consumers on %s: %w", ref, admission.Redact(err))
	}
	return nil
}

func resourceOf(kind object.Kind) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: kind.Resource()}
}
