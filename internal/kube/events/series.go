package events

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/headwater-k8s/headwater/internal/dedupe"
)

const (
	// subjectBurst and subjectInterval limit the writes about one subject, because
	// the note may differ at each try.
	subjectBurst    = 10
	subjectInterval = 30 * time.Second
	// maxKnownSeries bounds how many series are remembered. A repeat of a forgotten
	// series starts from the stored Event.
	maxKnownSeries = 2048
)

// subject identifies Events that differ only in note and annotations.
type subject struct {
	about, related corev1.ObjectReference
	warning        bool
	reason, action string
}

func subjectOf(event Event) subject {
	s := subject{about: *event.About, warning: event.Warning, reason: event.Reason, action: event.Action}
	if event.Related != nil {
		s.related = *event.Related
	}
	return s
}

type seriesKey struct {
	subject
	note string
	// annotations are the Event's annotations as text, because maps are not
	// comparable.
	annotations string
}

func seriesKeyOf(event Event) seriesKey {
	return seriesKey{subjectOf(event), event.Note, fmt.Sprint(event.Annotations)}
}

// series is an Event and its repeats.
type series struct {
	Event

	// name is the name of the Event object; empty until it was created.
	name  string
	last  time.Time
	count int32
}

// throttle decides when Events are written: immediately, until one subject reaches
// its limit. Beyond the limit it counts repeats, keeps only the latest new note, and
// drops the others.
type throttle struct {
	known    *lru.Cache // seriesKey -> *series
	limiters *lru.Cache // subject -> *rate.Limiter
	latest   map[subject]*series
	repeated map[*series]bool
	dropped  func()
}

func newThrottle(dropped func()) *throttle {
	return &throttle{
		known: lru.New(maxKnownSeries), limiters: lru.New(maxKnownSeries),
		latest: map[subject]*series{}, repeated: map[*series]bool{}, dropped: dropped,
	}
}

// add adds event and returns the series to write now, or nil.
func (a *throttle) add(event Event, now time.Time) *series {
	of := subjectOf(event)
	key := seriesKeyOf(event)
	if known, again := a.known.Get(key); again {
		s, _ := known.(*series)
		s.count, s.last = s.count+1, event.at
		if a.latest[of] != s {
			a.repeated[s] = true
		}
		return a.popRepeated(s, of, now)
	}
	s := &series{Event: event, last: event.at, count: 1}
	a.known.Add(key, s)
	if former := a.latest[of]; former != nil {
		a.known.Remove(seriesKeyOf(former.Event))
		a.dropped()
	}
	a.latest[of] = s
	return a.popLatest(of, now)
}

// due returns the delayed series that may be written now, oldest first.
func (a *throttle) due(now time.Time) []*series {
	var due []*series
	for of := range a.latest {
		if s := a.popLatest(of, now); s != nil {
			due = append(due, s)
		}
	}
	for repeated := range a.repeated {
		if s := a.popRepeated(repeated, subjectOf(repeated.Event), now); s != nil {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b *series) int { return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.Note, b.Note)) })
	return due
}

// popLatest returns the latest new note of the subject if it may be written now.
func (a *throttle) popLatest(of subject, now time.Time) *series {
	if !a.limiterOf(of).AllowN(now, 1) {
		return nil
	}
	s := a.latest[of]
	delete(a.latest, of)
	return s
}

// popRepeated returns s if it has repeats that may be written now.
func (a *throttle) popRepeated(s *series, of subject, now time.Time) *series {
	if !a.repeated[s] || !a.limiterOf(of).AllowN(now, 1) {
		return nil
	}
	delete(a.repeated, s)
	return s
}

func (a *throttle) limiterOf(of subject) *rate.Limiter {
	if known, found := a.limiters.Get(of); found {
		limiter, _ := known.(*rate.Limiter)
		return limiter
	}
	limiter := rate.NewLimiter(rate.Every(subjectInterval), subjectBurst)
	a.limiters.Add(of, limiter)
	return limiter
}

// namespace returns the namespace of the Event: default for cluster-scoped objects.
func (s *series) namespace() string {
	return cmp.Or(s.About.Namespace, metav1.NamespaceDefault)
}

// repeats returns the series of the Event object; nil if the Event occurred once.
func (s *series) repeats() *eventsv1.EventSeries {
	if s.count < 2 {
		return nil
	}
	return &eventsv1.EventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(s.last)}
}

// restart makes the latest repeat the first Event of the series.
func (s *series) restart() { s.name, s.at, s.count = "", s.last, 1 }

// resume continues a series that this or an earlier process stored. more is true if
// the stored series must be updated.
func (s *series) resume(stored *eventsv1.Event) (more bool) {
	s.name = stored.Name
	count, last := int32(1), stored.EventTime.Time
	if stored.Series != nil {
		count, last = stored.Series.Count, stored.Series.LastObservedTime.Time
	}
	own := stored.Series == nil && stored.EventTime.Equal(&metav1.MicroTime{Time: s.at.Truncate(time.Microsecond)})
	if own { // this process created it, but the response was lost
		count = 0
	}
	if s.Persisting && s.count == 1 && s.last.Sub(last) < dedupe.Interval {
		s.count = max(count, 1)
		return false
	}
	s.count += count
	return s.count > 1
}

func (s *series) object(instance string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: s.namespace(), Name: s.objectName(), Annotations: s.Annotations},
		EventTime:           metav1.NewMicroTime(s.at),
		Series:              s.repeats(),
		ReportingController: ReportingController, ReportingInstance: instance,
		Action: s.Action, Reason: s.Reason, Note: s.Note, Type: s.kind(),
		Regarding: *s.About, Related: s.Related,
	}
}

func (s *series) kind() string {
	if s.Warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// objectName returns a name that is the same for equal Events in every process, so
// that a restarted process finds the stored Event.
func (s *series) objectName() string {
	hash := fnv.New64a()
	related := corev1.ObjectReference{}
	if s.Related != nil {
		related = *s.Related
	}
	for _, part := range []string{
		referenceKey(*s.About), referenceKey(related), s.kind(), s.Reason, s.Action, s.Note, fmt.Sprint(s.Annotations),
	} {
		_, _ = fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	suffix := fmt.Sprintf(".%016x", hash.Sum64())
	name := s.About.Name + suffix
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 { // such as system:node
		name = ReportingController + suffix
	}
	return name
}

func referenceKey(ref corev1.ObjectReference) string {
	return fmt.Sprintf("%q", []string{ref.APIVersion, ref.Kind, ref.Namespace, ref.Name, string(ref.UID), ref.FieldPath})
}
