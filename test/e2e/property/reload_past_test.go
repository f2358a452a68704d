package property

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/test/cluster"
)

// past is what the objects of some namespaces were, and when. Moments are
// revisions of etcd, so that it knows what came first.
type past struct {
	editions  map[object.Ref][]edition
	workloads map[types.UID]*workload
	pods      map[string]*playedPod
	// rest is when everything was last at rest, begun when Headwater was last
	// started.
	rest, begun int64
	// faults are restarts that nothing calls for.
	faults []error
	// restartCount and refreshCount are how many restarts and refreshes there were.
	restartCount, refreshCount int
}

// edition is the data of an object from a moment on; nil while there is none.
type edition struct {
	since int64
	data  map[string]string
}

// workload is a Deployment as it is now, and what is known of its past.
type workload struct {
	form

	namespace, name, app string
	replicas             int32
	// started is when its pod template was last written, by whomever, restarted
	// when that was by Headwater.
	started, restarted int64
	// template is that of its owner, without Headwater's stamp.
	template, stamp, baseline string
	// bound are the moments at which its pods got their nodes, of deleted pods too.
	bound []int64
	// baselines are all that it had, in order.
	baselines []baseline
	// stamps are all that it had. undone is true from when somebody takes a restart
	// back until the next one.
	stamps map[string]bool
	undone bool
	// unled is true for a workload that was created while nobody led, and of which
	// the data has changed since.
	unled bool
	// lately are the forms that it had since the last rest.
	lately []form
	// explained is until when the changes of an object have had their restart.
	explained map[object.Ref]int64
	// known is what it was seen to consume of an object when all was at rest.
	known map[object.Ref]standing
}

// form is what Headwater goes by: what the pods consume, and what the owner
// wants.
type form struct {
	uses []use
	wish string
}

// baseline is Headwater's record on a workload from a moment on: a checksum for each
// reference. Their names are hashes, so it cannot be told which is which.
type baseline struct {
	since int64
	sums  map[string]string
}

// standing is what was consumed at a moment at which it was current.
type standing struct {
	use string
	at  int64
}

// playedPod is a pod that has a node.
type playedPod struct {
	app string
	// bound is when it got the node, read when its files were last seen to.
	bound, read        int64
	refreshed, confirm string
}

func newPast(rest int64) *past {
	return &past{
		editions: map[object.Ref][]edition{}, workloads: map[types.UID]*workload{}, pods: map[string]*playedPod{}, rest: rest,
	}
}

// add takes note of what came next.
func (p *past) add(next cluster.Edition) {
	switch o := next.Object.(type) {
	case *corev1.Secret:
		data := map[string]string{}
		for key, value := range o.Data {
			data[key] = string(value)
		}
		p.note(object.Secret, next, data)
	case *corev1.ConfigMap:
		p.note(object.ConfigMap, next, maps.Clone(o.Data))
	case *appsv1.Deployment:
		p.noteDeployment(o, next.Revision)
	case *corev1.Pod:
		p.notePod(o, next.Revision)
	case nil:
		p.noteDeletion(next)
	}
}

func (p *past) note(kind object.Kind, next cluster.Edition, data map[string]string) {
	ref := object.Ref{Kind: kind, Namespace: next.Namespace, Name: next.Name}
	if data == nil && next.Object != nil {
		data = map[string]string{}
	}
	p.editions[ref] = append(p.editions[ref], edition{next.Revision, data})
}

func (p *past) noteDeletion(next cluster.Edition) {
	switch next.Resource {
	case object.Secret.Resource():
		p.note(object.Secret, next, nil)
	case object.ConfigMap.Resource():
		p.note(object.ConfigMap, next, nil)
	case "deployments":
		maps.DeleteFunc(p.workloads, func(_ types.UID, w *workload) bool { return w.namespace == next.Namespace && w.name == next.Name })
	case "pods":
		delete(p.pods, next.Namespace+"/"+next.Name)
	}
}

// notePod knows pods by their names, which are never given twice.
func (p *past) notePod(o *corev1.Pod, revision int64) {
	id := o.Namespace + "/" + o.Name
	refreshed := o.Annotations[mark.RefreshedFor]
	known := p.pods[id]
	switch {
	case o.Spec.NodeName == "":
		return
	case o.DeletionTimestamp != nil: // as an API server leaves it that crashes meanwhile; its kubelet would end it
		delete(p.pods, id)
		return
	case known == nil:
		known = &playedPod{app: o.Labels["app"], bound: revision, read: revision}
		p.pods[id] = known
		for _, w := range p.workloads {
			if w.app == known.app {
				w.bound = append(w.bound, revision)
			}
		}
	case known.refreshed != refreshed:
		known.read = revision
		p.refreshCount++
	}
	known.refreshed, known.confirm = refreshed, o.Annotations[mark.RefreshConfirmed]
}

func (p *past) noteDeployment(o *appsv1.Deployment, revision int64) {
	template := o.Spec.Template.DeepCopy()
	restartedFor := template.Annotations[mark.RestartedFor]
	stamp := restartedFor + template.Annotations[mark.RestartedAfter]
	delete(template.Annotations, mark.RestartedFor)
	delete(template.Annotations, mark.RestartedAfter)
	if len(template.Annotations) == 0 {
		template.Annotations = nil
	}
	text, err := json.Marshal(template)
	if err != nil {
		p.faults = append(p.faults, err)
		return
	}
	w := p.workloads[o.UID]
	if w == nil {
		w = &workload{
			namespace: o.Namespace, name: o.Name, app: o.Spec.Template.Labels["app"], replicas: *o.Spec.Replicas,
			explained: map[object.Ref]int64{}, known: map[object.Ref]standing{}, stamps: map[string]bool{},
		}
		p.workloads[o.UID] = w
	}
	if w.template != string(text) {
		w.template, w.started = string(text), revision
	}
	p.reform(w, form{usesOf(o.Namespace, &template.Spec), o.Annotations[mark.Reload]})
	switch {
	case stamp == w.stamp:
	case stamp == "" || w.stamps[stamp]: // no two are alike
		w.undone = true
	default:
		p.noteRestart(w, restartedFor, revision)
	}
	w.stamps[stamp] = true
	w.stamp = stamp
	if text := o.Annotations[mark.Baseline]; text != w.baseline {
		w.baseline = text
		w.baselines = append(w.baselines, baseline{revision, sumsOf(text)})
	}
}

// sumsOf reads a baseline: a version, the id of a key, and reference=checksum, ….
func sumsOf(text string) map[string]string {
	sums := map[string]string{}
	for entry := range strings.SplitSeq(text[strings.LastIndexByte(text, ':')+1:], ",") {
		if reference, sum, found := strings.Cut(entry, "="); found {
			sums[reference] = sum
		}
	}
	return sums
}

// recordedAt are the checksums that w had at a moment.
func (w *workload) recordedAt(at int64) map[string]string {
	for _, one := range slices.Backward(w.baselines) {
		if one.since <= at {
			return one.sums
		}
	}
	return nil
}

// reform takes note of a form. What w consumes in another way than before, it
// consumes for the first time.
func (p *past) reform(w *workload, now form) {
	if len(w.lately) == 0 || !w.same(now) {
		w.lately = append(w.lately, now)
	}
	w.form = now
	for _, ref := range w.refs() {
		if known, found := w.known[ref]; found && known.use != w.useOf(ref) {
			delete(w.known, ref)
			delete(w.explained, ref)
		}
	}
	maps.DeleteFunc(w.known, func(ref object.Ref, _ standing) bool { return !slices.Contains(w.refs(), ref) })
}

// noteRestart finds the change that a restart is for, one that no other restart
// was for. It tries the last form first: of what that does not govern, a restart most
// likely records nothing, so that the change of it is still to be acted on.
func (p *past) noteRestart(w *workload, stamp string, revision int64) {
	before := w.restarted
	w.started, w.restarted = revision, revision
	p.restartCount++
	if w.undone {
		w.undone = false
		return
	}
	if stamp == w.baseline {
		p.faults = append(p.faults, fmt.Errorf("%s/%s was restarted at %d for what it ran already", w.namespace, w.name, revision))
		return
	}
	for _, form := range slices.Backward(w.lately) {
		for _, ref := range form.refs() {
			_, known := w.known[ref]
			since := p.explainedUntil(w, ref)
			if at, found := p.changed(w, form, ref, since, !known || before > since); found && form.governs(ref) {
				w.explained[ref] = at
				return
			}
			if at := p.writtenSince(ref, since); !known && form.governs(ref) && at > 0 {
				w.explained[ref] = at
				return
			}
		}
	}
	p.faults = append(p.faults, fmt.Errorf("%s/%s was restarted at %d, and no change calls for it: %s", w.namespace, w.name, revision, p.tell(w)))
}

// writtenSince is when ref was last written after since, labels included: to a pod
// that is seen for the first time its data is as new. 0: it was not.
func (p *past) writtenSince(ref object.Ref, since int64) int64 {
	all := p.from(ref, since)
	if len(all) == 0 || all[len(all)-1].since <= since || all[len(all)-1].data == nil {
		return 0
	}
	return all[len(all)-1].since
}

func (p *past) explainedUntil(w *workload, ref object.Ref) int64 {
	if at, found := w.explained[ref]; found {
		return at
	}
	return p.rest
}

// changed finds the first moment after since at which what f starts with of ref
// was another than at since. Without it the pods cannot start, so it does not
// count while something is missing. What they can do without counts where it was
// not there at since, where its absence may have been noted since, and where a pod of
// w got its node since, before it was back: such a pod may have started without it.
func (p *past) changed(w *workload, f form, ref object.Ref, since int64, noted bool) (at int64, found bool) {
	var before []string // each of which may be what it runs
	all := p.from(ref, since)
	for i, edition := range all {
		now := f.startsWith(ref, edition.data)
		if edition.data == nil {
			back := i+1 < len(all) && slices.ContainsFunc(w.bound, func(at int64) bool { return at > since && at < all[i+1].since })
			if now != "" && (i == 0 || noted || back) {
				before = append(before, now)
			}
			continue
		}
		if len(before) == 0 && now != "" {
			before = append(before, now)
		}
		if now != "" && slices.ContainsFunc(before, func(one string) bool { return one != now }) {
			return edition.since, true
		}
	}
	return 0, false
}

// from are the edition that was there at a moment, and those after it.
func (p *past) from(ref object.Ref, at int64) []edition {
	all := p.editions[ref]
	first := 0
	for i := range all {
		if all[i].since <= at {
			first = i
		}
	}
	return all[first:]
}

// latest is what ref holds; nil when it is not there.
func (p *past) latest(ref object.Ref) map[string]string {
	if all := p.editions[ref]; len(all) > 0 {
		return all[len(all)-1].data
	}
	return nil
}

// tell says what became of all that w consumes since the last rest.
func (p *past) tell(w *workload) string {
	text := fmt.Sprintf("it was started at %d, the last rest was at %d, it had the forms %+v", w.started, p.rest, w.lately)
	for _, ref := range w.refs() {
		text += fmt.Sprintf("; %s (explained until %d, known %+v):", ref, p.explainedUntil(w, ref), w.known[ref])
		for _, edition := range p.from(ref, min(p.explainedUntil(w, ref), w.started)) {
			text += fmt.Sprintf(" %d%v", edition.since, edition.data)
		}
	}
	return text
}
