package notify

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/text"
)

const (
	// gather is how long the first Event of a group waits for others. A change
	// reaches a thousand namespaces within that time.
	gather = 5 * time.Second
	// between is the minimum time between two reports of one group.
	between = 5 * time.Minute
	// repeat is how often a persisting condition is reported again.
	repeat = 4 * time.Hour
	// maxPlaces is how many objects a report names; the others are counted.
	maxPlaces = 3
	// maxNote is the maximum length of a note in bytes.
	maxNote = 400
	// maxSaid is the maximum number of remembered reports. Beyond it the oldest
	// are forgotten and may be reported again.
	maxSaid = 8192
)

// subject identifies a group: its Events share reason and rule.
type subject struct{ reason, rule string }

// group collects the Events of one subject.
type group struct {
	topic topic
	// count is the number of Events since the last report; places describe the
	// first ones.
	count  int
	places []string
	due    time.Time
	last   time.Time
}

// report is one message to receivers.
type report struct {
	topic topic
	text  string
}

// groups collects Events. Callers pass the current time.
type groups struct {
	bySubject map[subject]*group
	// said is when each persisting condition was last added, by a hash of its
	// Event.
	said map[uint64]time.Time
	seed maphash.Seed
}

func newGroups() *groups {
	return &groups{bySubject: map[subject]*group{}, said: map[uint64]time.Time{}, seed: maphash.MakeSeed()}
}

// add adds event, unless it only repeats a persisting condition.
func (g *groups) add(topic topic, event events.Event, now time.Time) {
	if topic.lasting() && g.repeats(event, now) && event.Persisting {
		return
	}
	about := subject{event.Reason, event.Rule}
	in := g.bySubject[about]
	if in == nil {
		in = &group{topic: topic}
		g.bySubject[about] = in
	}
	if in.count == 0 {
		in.due = now.Add(gather)
		if next := in.last.Add(between); !in.last.IsZero() && next.After(in.due) {
			in.due = next
		}
	}
	in.count++
	if len(in.places) < maxPlaces {
		in.places = append(in.places, place(event))
	}
}

func (g *groups) repeats(event events.Event, now time.Time) bool {
	id := maphash.String(g.seed, strings.Join([]string{event.Reason, event.Rule, objectOf(event.About), event.Note}, "\x00"))
	if last, known := g.said[id]; known && now.Sub(last) < repeat {
		return true
	}
	if len(g.said) >= maxSaid {
		maps.DeleteFunc(g.said, func(_ uint64, last time.Time) bool { return now.Sub(last) >= repeat })
	}
	if len(g.said) >= maxSaid {
		ids := slices.Collect(maps.Keys(g.said))
		slices.SortFunc(ids, func(a, b uint64) int { return g.said[a].Compare(g.said[b]) })
		for _, id := range ids[:maxSaid/2] {
			delete(g.said, id)
		}
	}
	g.said[id] = now
	return false
}

// take returns the reports that are due at now, and removes them.
func (g *groups) take(now time.Time) []report {
	var reports []report
	for about, in := range g.bySubject {
		switch {
		case in.count > 0 && !in.due.After(now):
			reports = append(reports, report{topic: in.topic, text: in.text(about)})
			in.count, in.places, in.last = 0, nil, now
		case in.count == 0 && now.Sub(in.last) >= between:
			delete(g.bySubject, about)
		}
	}
	slices.SortFunc(reports, func(a, b report) int { return strings.Compare(a.text, b.text) })
	return reports
}

// next returns when the next report is due, or zero if none is.
func (g *groups) next() time.Time {
	var next time.Time
	for _, in := range g.bySubject {
		if in.count > 0 && (next.IsZero() || in.due.Before(next)) {
			next = in.due
		}
	}
	return next
}

func (in *group) text(about subject) string {
	head := "Headwater: " + about.reason
	if about.rule != "" {
		head += ", rule " + about.rule
	}
	if in.count > 1 {
		head += fmt.Sprintf(", %d times", in.count)
	}
	lines := append([]string{head}, in.places...)
	if more := in.count - len(in.places); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// inert keeps what users wrote, such as their names, from being a mention, a link or a
// line of its own in any of the services.
var inert = strings.NewReplacer("<", "‹", "@", "(at)", "](", "] (", "://", ": //", "\n", " ", "\r", " ")

func place(event events.Event) string {
	return inert.Replace(objectOf(event.About) + ": " + text.Truncate(event.Note, maxNote))
}

func objectOf(ref *corev1.ObjectReference) string {
	if ref == nil {
		return "Headwater"
	}
	if ref.Namespace == "" || ref.Kind == "Namespace" {
		return ref.Kind + " " + ref.Name
	}
	return ref.Kind + " " + ref.Namespace + "/" + ref.Name
}

// maxWaiting is the maximum number of waiting reports for one receiver: an hour
// of a dozen subjects.
const maxWaiting = 100

// outbox is a queue of the reports for one receiver.
type outbox struct {
	mu      sync.Mutex
	waiting []report
	filled  loop.Wake
}

func newOutbox() *outbox { return &outbox{filled: loop.NewWake()} }

// put adds a report. If the outbox is full, it drops the oldest one and returns
// false.
func (o *outbox) put(one report) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting, one)
	room := len(o.waiting) <= maxWaiting
	if !room {
		o.waiting = o.waiting[1:]
	}
	o.filled.Notify()
	return room
}

// get waits for the oldest report and removes it. It returns false when ctx
// ends.
func (o *outbox) get(ctx context.Context) (report, bool) {
	for {
		if one, found := o.pop(); found {
			return one, true
		}
		select {
		case <-ctx.Done():
			return report{}, false
		case <-o.filled:
		}
	}
}

func (o *outbox) pop() (report, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return report{}, false
	}
	one := o.waiting[0]
	o.waiting = o.waiting[1:]
	return one, true
}
