package reload

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// wishes are what the owner of a consumer says about it: its labels, which
// rules select by, and annotations.
type wishes struct {
	labels labels.Set
	// pace is that of restarts that no rule governs.
	pace Pace
	// how applies instead of a rule's action; empty leaves it to the rule.
	how Action
	// keys are the only ones that count; nil means all.
	keys []string
	// asks are what it is reloaded for without a rule.
	asks []ask
	// named and patterns are what other tools are told to reload it for beside
	// what its pods consume.
	named    []object.Ref
	patterns []pattern
	// minInterval is the least time between two restarts; 0 leaves it open.
	minInterval time.Duration
	// reloader is what the owner says to Reloader, where that counts, and ignores
	// says that objects may tell Reloader to ignore them; see namespaceAsk.
	reloader *reloaderAsk
	ignores  bool
}

// fault is an annotation that is ignored, wholly or in part, since it cannot be
// read or honoured.
type fault struct {
	annotation, problem string
	inPart              bool
}

// reloadOff is what None is called in the annotation.
const reloadOff = "Off"

// wishesOf reads the wishes on a consumer. Who says something to Headwater says
// nothing to other tools.
func wishesOf(meta *metav1.ObjectMeta, theirs *foreign, settings Settings) (wishes, []fault) {
	of := wishes{labels: meta.Labels, pace: settings.pace(), ignores: settings.honours(Reloader)}
	var faults []fault
	read := func(annotation string, parse func(value string) error) {
		value, set := meta.Annotations[annotation]
		if !set {
			return
		}
		if err := parse(value); err != nil {
			faults = append(faults, fault{annotation: annotation, problem: err.Error()})
		}
	}
	var own headwaterAsk
	read(mark.Reload, func(value string) (err error) { of.how, err = parseAction(value); return err })
	read(mark.ReloadOn, func(value string) (err error) { own.on, err = mark.ParseReloadOn(meta.Namespace, value); return err })
	read(mark.ReloadKeys, func(value string) (err error) { of.keys, err = mark.ParseReloadKeys(value); return err })
	switch {
	case !settings.optIn() || of.how == None:
	case of.how != "" || own.on != nil:
		own.how = of.how
		of.asks = []ask{own}
	case theirs != nil:
		faults = append(faults, of.heed(theirs, settings)...)
	}
	return of, faults
}

// under is w for a workload that another is stamped for: where that one's owner
// says something to Headwater, it holds for both.
func (w wishes) under(top wishes) wishes {
	if top.how != "" {
		w.how, w.asks = top.how, top.asks
		w.named, w.patterns, w.minInterval, w.reloader = nil, nil, 0, nil
	}
	if top.keys != nil {
		w.keys = top.keys
	}
	return w
}

// heed adds what the owner tells the tools that are honoured.
func (w *wishes) heed(theirs *foreign, settings Settings) []fault {
	var faults []fault
	if settings.honours(Reloader) {
		w.asks = append(w.asks, theirs.reloader)
		w.named, w.patterns = theirs.reloader.names, theirs.reloader.patterns
		w.minInterval, w.reloader = theirs.reloader.pause, theirs.reloader
		faults = theirs.reloader.faults
	}
	if settings.honours(Wave) && theirs.wave.asked {
		w.asks = append(w.asks, theirs.wave)
		w.named = slices.Concat(w.named, theirs.wave.extras)
		faults = slices.Concat(faults, theirs.wave.faults)
	}
	return faults
}

func parseAction(value string) (Action, error) {
	switch value {
	case string(Auto), string(Restart), string(Refresh):
		return Action(value), nil
	case reloadOff:
		return None, nil
	default:
		return "", fmt.Errorf("%.40q is not Auto, Restart, Refresh or Off", value)
	}
}

// headwaterAsk is what an owner asks of Headwater: to reload the workload for
// all that its pods consume, when it is said how, or for what is listed alone.
type headwaterAsk struct {
	how Action
	on  []object.Ref
}

func (a headwaterAsk) tool() Tool { return Headwater }

func (a headwaterAsk) action() Action { return a.how }

func (a headwaterAsk) covers(ref object.Ref, _ Mode, _ mark.Tags) bool {
	return a.how != "" || slices.Contains(a.on, ref)
}

// asked returns the first of the asks that covers r, which is ref and bears
// tags; nil when none does. What a rule governs, the configuration asks for by
// that rule alone.
func (w wishes) asked(r Reference, ref object.Ref, tags mark.Tags, ruled bool) ask {
	for _, asked := range w.asks {
		if asked.covers(ref, r.Mode, tags) && (!ruled || asked.tool() != Sections) {
			return asked
		}
	}
	return nil
}

// spared returns why r, which no ask covers, is not covered after all.
func (w wishes) spared(r Reference, ref object.Ref, tags mark.Tags) Reason {
	for _, asked := range w.asks {
		sparing, is := asked.(interface {
			wants(ref object.Ref, mode Mode, tags mark.Tags) bool
			spares(ref object.Ref, tags mark.Tags) Reason
		})
		if is && sparing.wants(ref, r.Mode, tags) {
			return sparing.spares(ref, tags)
		}
	}
	return ""
}

// referencesTo are those of references that are to ref, and the one by which
// other tools are told of it.
func (w wishes) referencesTo(ref object.Ref, references []Reference) []Reference {
	var found []Reference
	for _, r := range references {
		if r.Kind == ref.Kind && r.Name == ref.Name {
			found = append(found, r)
		}
	}
	if slices.Contains(w.named, ref) || slices.ContainsFunc(w.patterns, func(p pattern) bool { return p.matches(ref) }) {
		found = append(found, listedReference(ref))
	}
	return found
}

// narrowed is r with the keys that count, and false when none of them does.
func (w wishes) narrowed(r Reference) (Reference, bool) {
	switch {
	case w.keys == nil:
		return r, true
	case r.Keys == nil:
		r.Keys = w.keys
		return r, true
	}
	keys := slices.DeleteFunc(slices.Clone(r.Keys), func(key string) bool { return !slices.Contains(w.keys, key) })
	if len(keys) == 0 {
		return r, false
	}
	r.Keys = keys
	return r, true
}

// listed are the references that the owner of a workload lists for Headwater
// beside those of its pods.
func listed(meta *metav1.ObjectMeta) []Reference {
	refs, _ := mark.ParseReloadOn(meta.Namespace, meta.Annotations[mark.ReloadOn]) // a fault is told by wishesOf
	references := make([]Reference, 0, len(refs))
	for _, ref := range refs {
		references = append(references, listedReference(ref))
	}
	return references
}

// listedReference is that of an object that an owner lists. No pod needs it to
// start.
func listedReference(ref object.Ref) Reference {
	return Reference{Kind: ref.Kind, Name: ref.Name, Mode: Listed, Optional: true}
}
