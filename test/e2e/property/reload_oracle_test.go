package property

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
)

// judge tells everything that is not yet, or never to be, as the documents
// promise: at rest every pod that runs has read what there is, and no restart
// was for nothing. refused is the one workload that nobody may change.
func (p *past) judge(refused string) error {
	errs := slices.Clone(p.faults)
	for _, w := range p.workloads {
		if p.judgeable(w, refused) {
			errs = append(errs, p.judgeRestarts(w), p.judgeFiles(w))
		}
	}
	return errors.Join(errs...)
}

// judgeable reports whether pods of w can start: nothing is promised of the
// others.
func (p *past) judgeable(w *workload, refused string) bool {
	for _, ref := range w.refs() {
		if w.lacks(ref, p.latest(ref)) {
			return false
		}
	}
	return w.name != refused
}

// judgeRestarts tells of each object that was consumed the last time when all
// was at rest, and has changed, whether the pods were started after that. What
// is consumed for the first time is adopted, whatever pods have of it, unless the
// workload was created while nobody led.
func (p *past) judgeRestarts(w *workload) error {
	var errs []error
	pods := p.podsOf(w)
	if len(pods) != int(w.replicas) {
		errs = append(errs, fmt.Errorf("%s/%s has %d pods, and should have %d", w.namespace, w.name, len(pods), w.replicas))
	}
	started := []int64{w.started}
	if w.replicas > 0 {
		started = nil
	}
	for _, pod := range pods {
		started = append(started, pod.bound)
	}
	for _, ref := range w.refs() {
		known, found := w.known[ref]
		if w.unled && !found {
			known, found = standing{w.useOf(ref), 0}, w.startsWith(ref, p.latest(ref)) != ""
		}
		if !found || !w.governs(ref) || p.latest(ref) == nil {
			continue
		}
		now := w.startsWith(ref, p.latest(ref))
		for _, at := range started {
			if runs := p.startedWith(w.form, ref, max(at, known.at), known.at); runs != now && !p.changedBack(w, ref, at, known.at) {
				errs = append(errs, fmt.Errorf("%s/%s was not restarted for %s: it runs %q, and there is %q: %s",
					w.namespace, w.name, ref, runs, now, p.tell(w)))
			}
		}
	}
	return errors.Join(errs...)
}

// changedBack reports whether the data of ref was changed and changed back, the pod
// started in between, and Headwater recorded nothing else meanwhile: nothing is promised
// of such a pod (deploy/GUARANTEES.md).
func (p *past) changedBack(w *workload, ref object.Ref, started, rested int64) bool {
	all, now := p.from(ref, rested), w.startsWith(ref, p.latest(ref))
	back := slices.ContainsFunc(all, func(e edition) bool { return e.since <= started && w.startsWith(ref, e.data) == now })
	if started <= rested || now == "" || !back {
		return false
	}
	for _, other := range w.refs() {
		if other != ref && p.changedSince(w, other, rested) {
			return true // a checksum that differs may be the other's
		}
	}
	sums := sumsOf(w.baseline)
	same := agree(w.recordedAt(started), sums)
	return same && (w.startsWith(ref, all[0].data) != now || agree(w.recordedAt(rested), sums))
}

// changedSince reports whether what w starts with of ref was ever another after a moment
// than then.
func (p *past) changedSince(w *workload, ref object.Ref, since int64) bool {
	all := p.from(ref, since)
	return slices.ContainsFunc(all, func(e edition) bool { return w.startsWith(ref, e.data) != w.startsWith(ref, all[0].data) })
}

// agree reports whether no reference has two checksums.
func agree(a, b map[string]string) bool {
	for reference, sum := range a {
		if other, found := b[reference]; found && other != sum {
			return false
		}
	}
	return true
}

// startedWith is what pods of f that got their node then read of ref. Until they
// can start, they wait. What is not there counts if it was not there either when
// that was noted.
func (p *past) startedWith(f form, ref object.Ref, at, noted int64) string {
	for _, edition := range p.from(ref, at) {
		if edition.data == nil && p.from(ref, noted)[0].data != nil {
			continue
		}
		if read := f.startsWith(ref, edition.data); read != "" {
			return read
		}
	}
	return ""
}

// judgeFiles tells whether the files of running pods are as new as the objects.
func (p *past) judgeFiles(w *workload) error {
	var errs []error
	for name, pod := range p.podsOf(w) {
		for _, ref := range w.refs() {
			now := p.latest(ref)
			if now == nil || !w.mounts(ref) || !w.governs(ref) {
				continue
			}
			if then := p.filesOf(ref, pod.read); !maps.Equal(then, now) && !p.looksOld(pod, then, now) {
				errs = append(errs, fmt.Errorf("pod %s was not refreshed for %s: it has %v from %d, and there is %v: %s", name, ref, then, pod.read, now, p.tell(w)))
			}
			if pod.confirm != pod.refreshed {
				errs = append(errs, fmt.Errorf("the refresh of pod %s is not confirmed", name))
			}
		}
	}
	return errors.Join(errs...)
}

// filesOf is what the files of a pod hold that was made to read ref at a revision. Where
// ref was not there, its kubelet tries again by itself until it is.
func (p *past) filesOf(ref object.Ref, read int64) map[string]string {
	for _, edition := range p.from(ref, read) {
		if edition.data != nil {
			return edition.data
		}
	}
	return nil
}

// looksOld reports whether all that pod lacks of now is that keys were removed, for
// which the API server notes no time, before the last start of Headwater: it
// leaves that to the kubelet, who looks every minute or so.
func (p *past) looksOld(pod *playedPod, then, now map[string]string) bool {
	for key, value := range now {
		if then[key] != value {
			return false
		}
	}
	return pod.read < p.begun
}

func (p *past) podsOf(w *workload) map[string]*playedPod {
	pods := map[string]*playedPod{}
	for name, pod := range p.pods {
		if pod.app == w.app {
			pods[name] = pod
		}
	}
	return pods
}

// rests takes note that all is at rest: what is there now is what Headwater has
// on record of what it could do something about. The rest stays to be
// explained from where it was.
func (p *past) rests(at int64, refused string) {
	last := p.rest
	p.rest = at
	for _, w := range p.workloads {
		w.lately, w.unled = []form{w.form}, false
		current := p.judgeable(w, refused)
		for _, ref := range w.refs() {
			_, found := w.known[ref]
			_, explained := w.explained[ref]
			switch {
			case p.latest(ref) == nil && (found || w.replicas == 0): // as it was, or no pod runs without it
			case current && w.governs(ref) && w.startsWith(ref, p.latest(ref)) != "":
				w.known[ref], w.explained[ref] = standing{w.useOf(ref), at}, at
			case !explained:
				w.explained[ref] = last
			}
		}
		for _, pod := range p.podsOf(w) {
			if current {
				pod.read = max(pod.read, at)
			}
		}
	}
}
