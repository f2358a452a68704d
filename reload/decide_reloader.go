package reload

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// The bounds of patterns, which anybody may write: in characters, no name being
// longer than 253, and in steps of the compiled form of all of a workload's.
const (
	maxPattern      = 512
	maxPatternSteps = 2000
)

// reloaderAsk is what an owner asks of Reloader, which restarts.
type reloaderAsk struct {
	// auto, search and excluded are by kind of object.
	auto, search map[object.Kind]bool
	// declines says that auto is false, and not left out.
	declines map[object.Kind]bool
	excluded map[object.Kind][]string
	// classes is true where auto is about SecretProviderClasses, too.
	classes  bool
	names    []object.Ref
	patterns []pattern
	// steps are what it takes at most to match all patterns, per character.
	steps int
	// pause is the least time between two restarts.
	pause  time.Duration
	faults []fault
}

func readReloader(kind Kind, namespace string, annotations, template map[string]string) *reloaderAsk {
	a := &reloaderAsk{
		auto: map[object.Kind]bool{}, search: map[object.Kind]bool{}, declines: map[object.Kind]bool{}, excluded: map[object.Kind][]string{},
	}
	for _, of := range object.Kinds {
		a.excluded[of] = items(annotations[mark.ReloaderExcludes(of)])
		a.readKind(of, namespace, whoSays(annotations, template, mark.ReloaderTypedAuto(of), mark.ReloaderNames(of)))
	}
	a.readClasses(whoSays(annotations, template, mark.ReloaderClassAuto, mark.ReloaderClasses))
	if text, set := annotations[mark.ReloaderPausePeriod]; set && kind == KindDeployment {
		pause, err := time.ParseDuration(text)
		if err != nil || pause <= 0 {
			a.fault(mark.ReloaderPausePeriod, fmt.Sprintf("%.40q is not a time above zero, such as 5m", text))
		}
		a.pause = max(0, pause)
	}
	return a
}

// whoSays returns the annotations that count for one kind of object, which those
// that are typed are about: those of the pod template when the workload has none.
func whoSays(annotations, template map[string]string, typed ...string) map[string]string {
	for _, key := range append(typed, mark.ReloaderAuto, mark.ReloaderSearch) {
		if _, says := annotations[key]; says {
			return annotations
		}
	}
	return template
}

// unseenClasses is why nothing is done for a SecretProviderClass.
const unseenClasses = "Headwater does not see what a Secrets Store CSI driver mounts"

func (a *reloaderAsk) readClasses(says map[string]string) {
	for _, key := range []string{mark.ReloaderClassAuto, mark.ReloaderClasses} {
		if _, asked := says[key]; asked {
			a.fault(key, unseenClasses)
		}
	}
	a.classes, _ = strconv.ParseBool(says[mark.ReloaderAuto])
}

// unseen are the annotations of w that ask for more than Headwater does, for what
// its pods mount.
func (w *Workload) unseen(of wishes) []fault {
	for _, asked := range of.asks {
		reloader, is := asked.(*reloaderAsk)
		if !is || !reloader.classes {
			continue
		}
		for _, r := range w.References {
			if r.Mode == Provided {
				return []fault{{annotation: mark.ReloaderAuto, inPart: true, problem: unseenClasses + ": " + string(r.Kind) + " " + r.Name}}
			}
		}
	}
	return nil
}

func (a *reloaderAsk) readKind(kind object.Kind, namespace string, says map[string]string) {
	a.auto[kind] = a.readBool(says, mark.ReloaderAuto) || a.readBool(says, mark.ReloaderTypedAuto(kind))
	a.declines[kind] = !a.auto[kind] && says[mark.ReloaderAuto]+says[mark.ReloaderTypedAuto(kind)] != ""
	a.search[kind] = says[mark.ReloaderSearch] == "true"
	list := items(says[mark.ReloaderNames(kind)])
	if len(list) > mark.MaxListed {
		a.faults = append(a.faults, fault{
			annotation: mark.ReloaderNames(kind), inPart: true,
			problem: fmt.Sprintf("it lists %d objects, of which the first %d count", len(list), mark.MaxListed),
		})
	}
	for _, item := range list[:min(len(list), mark.MaxListed)] {
		if len(validation.IsDNS1123Subdomain(item)) == 0 {
			a.names = append(a.names, object.Ref{Kind: kind, Namespace: namespace, Name: item})
			continue
		}
		compiled, err := a.readPattern(item)
		if err != nil {
			a.faults = append(a.faults, fault{annotation: mark.ReloaderNames(kind), problem: err.Error(), inPart: true})
			continue
		}
		a.patterns = append(a.patterns, pattern{kind, compiled})
	}
}

// readPattern anchors a pattern as Reloader does, which is not the same for one
// with alternatives.
func (a *reloaderAsk) readPattern(item string) (*regexp.Regexp, error) {
	if len(item) > maxPattern {
		return nil, fmt.Errorf("the pattern %.40q… is longer than %d characters", item, maxPattern)
	}
	anchored := "^" + item + "$"
	parsed, err := syntax.Parse(anchored, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%.40q is neither a name nor a regular expression", item)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || a.steps+len(program.Inst) > maxPatternSteps {
		return nil, fmt.Errorf("the pattern %.40q is too costly to match, with those before it", item)
	}
	a.steps += len(program.Inst)
	return regexp.Compile(anchored)
}

func (a *reloaderAsk) readBool(says map[string]string, key string) bool {
	text, set := says[key]
	value, err := strconv.ParseBool(text)
	if set && err != nil {
		a.fault(key, fmt.Sprintf("%.40q is neither true nor false", text))
	}
	return value
}

// fault adds what is wrong with an annotation, once for all kinds.
func (a *reloaderAsk) fault(annotation, problem string) {
	if found := (fault{annotation: annotation, problem: problem}); !slices.Contains(a.faults, found) {
		a.faults = append(a.faults, found)
	}
}

func (a *reloaderAsk) tool() Tool { return Reloader }

func (a *reloaderAsk) action() Action { return Restart }

func (a *reloaderAsk) covers(ref object.Ref, mode Mode, tags mark.Tags) bool {
	return a.wants(ref, mode, tags) && a.spares(ref, tags) == ""
}

// wants is covers, but for what spares says.
func (a *reloaderAsk) wants(ref object.Ref, mode Mode, tags mark.Tags) bool {
	if a.lists(ref) {
		return true
	}
	consumed := mode != Listed // or else another tool lists it
	return consumed && (a.auto[ref.Kind] || a.search[ref.Kind] && tags.Match)
}

// spares returns why nothing is done for the object, whatever the owner wants
// otherwise.
func (a *reloaderAsk) spares(ref object.Ref, tags mark.Tags) Reason {
	switch {
	case tags.Ignore:
		return ReasonIgnored
	case slices.Contains(a.excluded[ref.Kind], ref.Name):
		return ReasonExcluded
	default:
		return ""
	}
}

func (a *reloaderAsk) lists(ref object.Ref) bool {
	return slices.Contains(a.names, ref) || slices.ContainsFunc(a.patterns, func(p pattern) bool { return p.matches(ref) })
}
