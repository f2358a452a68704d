package reported

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/survey"
)

const (
	// askInterval is how often a command looks whether the leader took a request.
	askInterval = 250 * time.Millisecond
	// behind is how long a command waits for a RuleStatus that does not fit what is asked:
	// it may be about some seconds ago.
	behind = 6 * time.Second
)

// Steering is what the user asks of the deliveries of a rule.
type Steering struct {
	Rule string        `json:"rule"`
	Verb delivery.Verb `json:"verb"`
	// DryRun is true if nothing is recorded.
	DryRun bool `json:"dryRun,omitempty"`
	// Revisions are the numbers that it is about, by source.
	Revisions map[string]int `json:"revisions"`

	requests survey.Requests
}

// Steering returns what asked means for the deliveries of rule now. source is the name of
// the source, or empty for each one that asked fits.
func (r *reader) Steering(ctx context.Context, rule, source string, asked delivery.Request) (Steering, error) {
	steering := Steering{Rule: rule, Verb: asked.Verb, Revisions: map[string]int{}}
	err := r.whenKnown(ctx, func() (err error) {
		steering.requests, err = r.requests(ctx, rule, source, asked)
		return err
	})
	for source, request := range steering.requests {
		steering.Revisions[source] = cmp.Or(request.To, request.Revision)
	}
	return steering, err
}

// refusal is an error by what a RuleStatus says, which may be out of date.
type refusal struct{ error }

// whenKnown calls decide until it returns no refusal, at most for the time behind.
func (*reader) whenKnown(ctx context.Context, decide func() error) error {
	ctx, cancel := context.WithTimeout(ctx, behind)
	defer cancel()
	var refused error
	err := wait.PollUntilContextCancel(ctx, askInterval, true, func(context.Context) (bool, error) {
		err := decide()
		if _, is := errors.AsType[refusal](err); is {
			refused = err
			return false, nil
		}
		refused = nil
		return true, err
	})
	return cmp.Or(refused, err)
}

// Question asks whether it is meant.
func (s Steering) Question() string {
	var text strings.Builder
	for _, source := range slices.Sorted(maps.Keys(s.Revisions)) {
		fmt.Fprintf(&text, "Every clone of %s gets revision %d, all at once, until the source is edited. ", source, s.Revisions[source])
	}
	return text.String() + "Type yes to go on: "
}

// ErrUnanswered says that a request is stored, and nobody knows yet what comes of it.
var ErrUnanswered = errors.New("not known yet: the request is stored, but no leader answered it")

// Steer asks the leader to do it, and waits for its answer, at most for timeout. The error says
// what it refused, or is ErrUnanswered.
func (r *reader) Steer(ctx context.Context, steering Steering, timeout time.Duration) (Steering, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := r.ask(ctx, steering.Rule, steering.requests); err != nil {
		return steering, err
	}
	refused := map[string]error{}
	err := wait.PollUntilContextCancel(ctx, askInterval, true, func(ctx context.Context) (bool, error) {
		left := 0
		err := survey.ChangeRequests(ctx, r.clients.Typed, r.own, steering.Rule, func(stored survey.Requests) {
			left = 0
			for source, request := range steering.requests {
				switch answer := stored[source]; {
				case !answer.Equal(request):
				case answer.Refused != "":
					refused[source] = fmt.Errorf("the leader refused the %s of %s: %s", request.Verb, source, answer.Refused)
					delete(stored, source)
				default:
					left++
				}
			}
		})
		return err == nil && left == 0, err
	})
	switch {
	case ctx.Err() != nil && err != nil:
		err = fmt.Errorf("%w within %s; see headwater history", ErrUnanswered, timeout)
	case err != nil:
		err = fmt.Errorf("%w that could be read: %w", ErrUnanswered, err)
	}
	for _, source := range slices.Sorted(maps.Keys(refused)) {
		err = errors.Join(err, refused[source])
	}
	return steering, err
}

// ask stores requests once no other request about these sources waits: each request is
// done, also if two people ask at the same time.
func (r *reader) ask(ctx context.Context, rule string, requests survey.Requests) error {
	var before string
	err := wait.PollUntilContextCancel(ctx, askInterval, true, func(ctx context.Context) (bool, error) {
		before = ""
		err := survey.ChangeRequests(ctx, r.clients.Typed, r.own, rule, func(stored survey.Requests) {
			before = ""
			for source := range requests {
				if request, found := stored[source]; found && request.Refused == "" {
					before = fmt.Sprintf("%s, asked %s", request.What(), request)
					return
				}
			}
			maps.Copy(stored, requests)
		})
		return err == nil && before == "", err
	})
	if err != nil && before != "" {
		return fmt.Errorf("not recorded: no leader took an earlier request (%s); see headwater status", before)
	}
	return err
}

// requests returns what to ask for each source of rule that asked fits. The leader decides
// again, also by the rule and by what the revisions contain.
func (r *reader) requests(ctx context.Context, rule, source string, asked delivery.Request) (survey.Requests, error) {
	recorded, suspended, err := r.recorded(ctx, rule, source)
	switch {
	case err != nil:
		return nil, err
	case suspended:
		return nil, refusal{fmt.Errorf("rule %q is suspended, so nothing is delivered; remove `suspend` from it first", rule)}
	}
	if asked.To != 0 && len(recorded.Sources)+recorded.MoreSources > 1 {
		var names []string
		for _, one := range recorded.Sources {
			names = append(names, nameOf(one))
		}
		return nil, fmt.Errorf("rule %q has several sources; choose one by --source: %s", rule, strings.Join(names, ", "))
	}
	requests, refused := survey.Requests{}, error(nil)
	for _, one := range recorded.Sources {
		request, err := aim(one, asked)
		if err != nil {
			refused = fmt.Errorf("%s: %w", one.Source, err)
			continue
		}
		request.By, request.At = r.user, askedAt(r.clients.AnsweredAt(), time.Now())
		requests[one.Source] = request
	}
	if len(requests) == 0 {
		return nil, refusal{refused}
	}
	return requests, nil
}

// askedAt returns the time of a request by the API server's clock, which tells whole seconds. What
// is below them is by this machine's: the same request within a second is another one.
func askedAt(answered, now time.Time) time.Time {
	return answered.UTC().Truncate(time.Second).Add(time.Duration(now.Nanosecond())).Truncate(time.Millisecond)
}

// aim returns asked for the revision of source that it is about. It fails if that cannot be
// done.
func aim(source rulestatus.SourceHistory, asked delivery.Request) (delivery.Request, error) {
	history := source.Revised()
	request, target := asked, subject(history, asked)
	if asked.To != 0 {
		if source.MoreRevisions > 0 && history.Numbered(asked.To) == nil && asked.To < history.Newest().Number {
			return request, nil // it may be one that is not listed
		}
		target = &revisions.Revision{}
	}
	switch {
	case target != nil:
	case asked.Verb == delivery.Rollback:
		return request, errors.New("no delivery is under way; say by --to which revision to go back to, as headwater history lists them")
	default:
		return request, fmt.Errorf("no delivery is under way, so there is nothing to %s", asked.Verb)
	}
	request.Revision = target.Number
	if asked.Verb == delivery.Promote {
		request.Stage = target.Stage
	}
	_, err := request.Apply(nil, history, nil, request.At)
	return request, err
}

// subject returns the revision that asked is about; nil if there is none.
func subject(history revisions.History, asked delivery.Request) *revisions.Revision {
	candidate := history.Candidate()
	switch {
	case asked.Verb == delivery.Resume && history.Pinned() != nil:
		return history.Pinned()
	case asked.Verb == delivery.Retry && candidate == nil:
		return history.Newest()
	default:
		return candidate
	}
}

// Table writes what was asked.
func (s Steering) Table(out *output.Writer) {
	for _, source := range slices.Sorted(maps.Keys(s.Revisions)) {
		if s.DryRun {
			_, _ = fmt.Fprintf(out, "%s: would ask for %s of revision %d\n", source, s.Verb, s.Revisions[source])
		} else {
			_, _ = fmt.Fprintf(out, "%s: %s of revision %d; `headwater history %s` shows what comes of it\n", source, s.Verb, s.Revisions[source], s.Rule)
		}
	}
}
