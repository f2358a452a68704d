package inspect

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// reading is the part of a Status that is read by requests, not from caches.
type reading struct {
	at time.Time
	eventState
	lease *coordinationv1.Lease
	// proofs is the service's recorded result for each rule that protects.
	proofs map[string]string
	// notes say what could not be read, and why.
	notes []string
}

func (i *Inspector) read(ctx context.Context) reading {
	read := reading{at: time.Now(), eventState: i.events(ctx)}
	var unled, unproven string
	read.lease, unled = i.lease(ctx)
	read.proofs, unproven = i.proofs(ctx)
	for _, note := range []string{read.unread, unled, unproven} {
		if note != "" {
			read.notes = append(read.notes, note)
		}
	}
	return read
}

func (r reading) leader() *Leadership {
	if r.lease == nil {
		return nil
	}
	found := LeadershipOf(r.lease, time.Now())
	return &found
}

// eventState is what the running service reported by Events.
type eventState struct {
	failures map[failureKey]failure
	// fights are the recently reported fights over clones.
	fights       map[object.Ref]failure
	propagations map[propagationKey]*latestPropagation
	// unread says why the Events could not be read.
	unread string
}

type failureKey struct {
	rule   string
	target object.Ref
}

type failure struct {
	message string
	at      time.Time
}

type propagationKey struct {
	rule   string
	source object.Ref
}

// events reads the service's Events. If the user may not list Events, it returns
// none and sets unread.
func (i *Inspector) events(ctx context.Context) eventState {
	state := eventState{failures: map[failureKey]failure{}, fights: map[object.Ref]failure{}, propagations: map[propagationKey]*latestPropagation{}}
	for reason, take := range map[string]func(eventsv1.Event){
		sync.CloneFailed: func(event eventsv1.Event) {
			key, at := failureKey{event.Annotations[progress.EventRule], regarding(event)}, lastSeen(event)
			if state.failures[key].at.Before(at) {
				state.failures[key] = failure{progress.FailureOf(event.Annotations), at}
			}
		},
		progress.Fighting: func(event eventsv1.Event) {
			target, at := regarding(event), lastSeen(event)
			if state.fights[target].at.Before(at) && time.Since(at) < progress.FightEventLasts {
				state.fights[target] = failure{event.Note, at}
			}
		},
		sync.Propagated: func(event eventsv1.Event) {
			read, ok := progress.PropagationOf(event.Annotations)
			key, at := propagationKey{read.Rule, regarding(event)}, lastSeen(event)
			if known := state.propagations[key]; ok && (known == nil || known.At.Before(at)) {
				state.propagations[key] = &latestPropagation{At: at, Clones: read.Clones, Failing: read.Failing, Seconds: read.Took.Seconds()}
			}
		},
	} {
		list, err := i.clients.Typed.EventsV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("reason", reason).String(),
		})
		if err != nil {
			state.unread = "why clones fail and how long changes took is not shown: " + err.Error()
			break
		}
		for _, event := range list.Items {
			if event.ReportingController == events.ReportingController {
				take(event)
			}
		}
	}
	return state
}

// withFight returns cloneStatus with status Fighting if another client undoes each
// repair of the clone.
func (t eventState) withFight(cloneStatus survey.CloneStatus) survey.CloneStatus {
	fight, found := t.fights[cloneStatus.Target]
	if found && (cloneStatus.Status == survey.Behind || cloneStatus.Status == survey.Drifting) {
		cloneStatus.Status = survey.Fighting
		cloneStatus.Decision.Reason, cloneStatus.Decision.Message = progress.Fighting, fight.message
	}
	return cloneStatus
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
