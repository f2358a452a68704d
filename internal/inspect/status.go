package inspect

import (
	"context"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync"
)

// Status is how things stand.
type Status struct {
	// Leader is nil when it is not known whether a replica leads.
	Leader *Leadership   `json:"leader,omitempty"`
	Rules  []*RuleStatus `json:"rules"`
	// Protection is about the rules that protect.
	Protection []Protection `json:"protection,omitempty"`
	// Notes say what could not be found out.
	Notes []string `json:"notes,omitempty"`
}

// RuleStatus is how things stand with one rule.
type RuleStatus struct {
	Name string `json:"name"`
	// Removed is true for a rule that clones name and the file does not.
	Removed bool           `json:"removed,omitempty"`
	Sources []SourceStatus `json:"sources"`
	// Missing says what is missing when the rule has no source.
	Missing string                `json:"missing,omitempty"`
	Clones  map[sync.Standing]int `json:"clones"`
	// Problems are the clones that are not as they should be.
	Problems []Problem `json:"problems,omitempty"`
}

// SourceStatus is how things stand with one source of a rule.
type SourceStatus struct {
	Source string `json:"source"`
	Exists bool   `json:"exists"`
	// LastChange is when its content was last written.
	LastChange *time.Time `json:"lastChange,omitempty"`
	Spread     *Spread    `json:"spread,omitempty"`
}

// Spread is how the latest change reached the clones.
type Spread struct {
	At      time.Time `json:"at"`
	Clones  int       `json:"clones"`
	Failing int       `json:"failing"`
	Seconds float64   `json:"seconds"`
}

// Problem is one clone that is not as it should be.
type Problem struct {
	Standing  sync.Standing `json:"standing"`
	Kind      object.Kind   `json:"kind"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Reason    sync.Reason   `json:"reason"`
	Message   string        `json:"message,omitempty"`
}

// Total is the number of places that the rule is about.
func (r *RuleStatus) Total() int {
	total := 0
	for _, count := range r.Clones {
		total += count
	}
	return total
}

// Status finds out how things stand.
func (i *Inspector) Status(ctx context.Context) Status {
	told := i.events(ctx)
	status := Status{Notes: told.notes}
	byName := map[string]*RuleStatus{}
	add := func(name string) *RuleStatus {
		rule := &RuleStatus{Name: name, Sources: []SourceStatus{}, Clones: map[sync.Standing]int{}}
		byName[name] = rule
		status.Rules = append(status.Rules, rule)
		return rule
	}
	for _, rule := range i.rules.All() {
		status := add(rule.Name)
		status.Sources, status.Missing = i.sources(rule, told), i.observer.MissingSource(rule.Base)
	}
	i.observer.Survey(i.maxFraction(), i.look(ctx), func(finding sync.Finding) {
		rule := byName[finding.Rule]
		if rule == nil {
			rule = add(finding.Rule)
			rule.Removed = true
		}
		rule.take(finding, told.failures[failureKey{finding.Rule, finding.Target}])
	})
	for _, rule := range status.Rules {
		slices.SortFunc(rule.Problems, compareProblems)
	}
	var unled, unprotected string
	status.Leader, unled = i.leadership(ctx)
	status.Protection, unprotected = i.protection(ctx)
	status.Notes = append(status.Notes, unled, unprotected)
	status.Notes = slices.DeleteFunc(status.Notes, func(note string) bool { return note == "" })
	return status
}

// take counts finding. What was told of a failure is no news of a place that was
// written since, or that waits for a source that was.
func (r *RuleStatus) take(finding sync.Finding, failure failure) {
	message := finding.Step.Message
	if failure.note != "" && finding.Step.Writes() && !failure.at.Before(finding.Written) {
		finding.Standing, message = sync.Failed, failure.note
	}
	r.Clones[finding.Standing]++
	if finding.Standing == sync.Current {
		return
	}
	r.Problems = append(r.Problems, Problem{
		Standing: finding.Standing, Kind: finding.Target.Kind, Namespace: finding.Target.Namespace, Name: finding.Target.Name,
		Reason: finding.Step.Reason, Message: message,
	})
}

func (i *Inspector) sources(rule sync.Rule, told told) []SourceStatus {
	states := i.observer.SourceStates(rule)
	sources := make([]SourceStatus, 0, len(states))
	for _, state := range states {
		spread := told.spreads[spreadKey{rule.Name, state.Ref}]
		sources = append(sources, SourceStatus{
			Source: state.Ref.String(), Exists: state.Exists, LastChange: lastChange(state, spread), Spread: spread,
		})
	}
	return sources
}

// lastChange is nil when it is not known. Of an object that was without any
// owned field once, such as an emptied ConfigMap, the API server notes no times
// again; then it is when what was last told to spread began to.
func lastChange(state sync.SourceState, spread *Spread) *time.Time {
	at := state.ChangedAt
	if at.IsZero() && state.Exists && spread != nil {
		at = spread.At.Add(-time.Duration(spread.Seconds * float64(time.Second)))
	}
	if at.IsZero() {
		return nil
	}
	return &at
}

// told is what the running service said by Events.
type told struct {
	failures map[failureKey]failure
	spreads  map[spreadKey]*Spread
	notes    []string
}

type failureKey struct {
	rule   string
	target object.Ref
}

type failure struct {
	note string
	at   time.Time
}

type spreadKey struct {
	rule   string
	source object.Ref
}

// events reads what the service told. It needs no more than read access, and
// does without where there is none.
func (i *Inspector) events(ctx context.Context) told {
	told := told{failures: map[failureKey]failure{}, spreads: map[spreadKey]*Spread{}}
	for reason, take := range map[string]func(eventsv1.Event){
		sync.CloneFailed: func(event eventsv1.Event) {
			key, at := failureKey{sync.FailedRule(event.Note), regarding(event)}, lastSeen(event)
			if told.failures[key].at.Before(at) {
				told.failures[key] = failure{event.Note, at}
			}
		},
		sync.Propagated: func(event eventsv1.Event) {
			note, ok := sync.ParseSpreadNote(event.Note)
			key, at := spreadKey{note.Rule, regarding(event)}, lastSeen(event)
			if known := told.spreads[key]; ok && (known == nil || known.At.Before(at)) {
				told.spreads[key] = &Spread{At: at, Clones: note.Clones, Failing: note.Failing, Seconds: note.Took.Seconds()}
			}
		},
	} {
		list, err := i.clients.Typed.EventsV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("reason", reason).String(),
		})
		if err != nil {
			told.notes = append(told.notes, "why clones fail, and how long changes took, is not shown: "+err.Error())
			break
		}
		for _, event := range list.Items {
			if event.ReportingController == kube.ReportingController {
				take(event)
			}
		}
	}
	return told
}

func regarding(event eventsv1.Event) object.Ref {
	return object.Ref{Kind: object.Kind(event.Regarding.Kind), Namespace: event.Regarding.Namespace, Name: event.Regarding.Name}
}

func lastSeen(event eventsv1.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	return event.EventTime.Time
}
