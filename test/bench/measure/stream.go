package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Patience bounds one wait, unless its context does sooner.
const Patience = 10 * time.Minute

// Stream is a watch, read by one goroutine: waiting for an event costs the
// machine less than asking again and again, and shows it no later. It goes on
// where it was when the API server breaks it off, as that does to a client
// that a burst of events was too fast for.
type Stream struct {
	// begin watches from a resourceVersion on, until the stream's own context
	// ends: one wait is shorter than the stream.
	begin   func(version string) (watch.Interface, error)
	version string // of the last event
	events  watch.Interface
}

// Open watches, from now on, what is called name in namespace; everything where
// name is empty, and everywhere where namespace is.
func Open(ctx context.Context, client rest.Interface, resource, namespace, name string) (*Stream, error) {
	selector := fields.Everything()
	if name != "" {
		selector = fields.OneTermEqualSelector("metadata.name", name)
	}
	source := cache.NewListWatchFromClient(client, resource, namespace, selector)
	now, err := source.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", resource, err)
	}
	list, err := meta.ListAccessor(now)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", resource, err)
	}
	s := &Stream{version: list.GetResourceVersion()}
	s.begin = func(version string) (watch.Interface, error) {
		return source.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: version})
	}
	return s, s.resume()
}

func (s *Stream) resume() (err error) {
	if s.events, err = s.begin(s.version); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return nil
}

// Stop ends the watch.
func (s *Stream) Stop() { s.events.Stop() }

// Until reads on to the first event that good says yes to.
func (s *Stream) Until(ctx context.Context, good func(watch.Event) bool) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for an event: %w", context.Cause(ctx))
		case event, open := <-s.events.ResultChan():
			if !open {
				if err := s.resume(); err != nil {
					return err
				}
				continue
			}
			object, err := meta.Accessor(event.Object)
			if err != nil {
				return fmt.Errorf("the watch broke off: %v", event.Object)
			}
			s.version = object.GetResourceVersion()
			if good(event) {
				return nil
			}
		}
	}
}

// portion is how many namespaces Each waits for at most Patience.
const portion = 1000

// Each waits until good held in n namespaces.
func (s *Stream) Each(n int, good func(watch.Event) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		seen := map[string]bool{}
		for len(seen) < n {
			next := min(n, len(seen)+portion)
			err := s.Until(ctx, func(event watch.Event) bool {
				if good(event) {
					seen[NamespaceOf(event)] = true
				}
				return len(seen) == next
			})
			if err != nil {
				return fmt.Errorf("%d of %d namespaces: %w", len(seen), n, err)
			}
		}
		return nil
	}
}

// NameOf is the name of what event is about.
func NameOf(event watch.Event) string {
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return ""
	}
	return object.GetName()
}

// NamespaceOf is the namespace of what event is about.
func NamespaceOf(event watch.Event) string {
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return ""
	}
	return object.GetNamespace()
}

// Added says yes to what is new.
func Added(event watch.Event) bool { return event.Type == watch.Added }

// Happens says yes to an event of that kind in namespace.
func Happens(kind watch.EventType, namespace string) func(watch.Event) bool {
	return func(event watch.Event) bool { return event.Type == kind && NamespaceOf(event) == namespace }
}

// Rest waits until the stream has shown nothing for that long.
func (s *Stream) Rest(ctx context.Context, period time.Duration) error {
	for {
		resting, cancel := context.WithTimeout(ctx, period)
		err := s.Until(resting, func(watch.Event) bool { return true })
		cancel()
		switch {
		case err == nil: // something happened
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, context.DeadlineExceeded):
			return nil
		default:
			return err
		}
	}
}
