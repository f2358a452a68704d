package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// patience bounds one wait.
const patience = 10 * time.Minute

// stream is a watch, read by one goroutine: waiting for an event costs the
// machine less than asking again and again, and shows it no later. It goes on
// where it was when the API server breaks it off, as that does to a client
// that a burst of events was too fast for.
type stream struct {
	// begin watches from a resourceVersion on, until the stream's own context
	// ends: one wait is shorter than the stream.
	begin   func(version string) (watch.Interface, error)
	version string // of the last event
	events  watch.Interface
}

// open watches, from now on, what is called name in any namespace; everything
// where name is empty.
func open(ctx context.Context, client rest.Interface, resource, name string) (*stream, error) {
	selector := fields.Everything()
	if name != "" {
		selector = fields.OneTermEqualSelector("metadata.name", name)
	}
	source := cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, selector)
	now, err := source.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", resource, err)
	}
	list, err := meta.ListAccessor(now)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", resource, err)
	}
	s := &stream{version: list.GetResourceVersion()}
	s.begin = func(version string) (watch.Interface, error) {
		return source.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: version})
	}
	return s, s.resume()
}

func (s *stream) resume() (err error) {
	if s.events, err = s.begin(s.version); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return nil
}

func (s *stream) stop() { s.events.Stop() }

// secrets watches the Secrets called name.
func (a *arena) secrets(ctx context.Context, name string) (*stream, error) {
	return open(ctx, a.admin.CoreV1().RESTClient(), "secrets", name)
}

// until reads on to the first event that good says yes to.
func (s *stream) until(ctx context.Context, good func(watch.Event) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
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

// each waits until good held in n namespaces.
func (s *stream) each(n int, good func(watch.Event) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		seen := map[string]bool{}
		if n == 0 {
			return nil
		}
		return s.until(ctx, func(event watch.Event) bool {
			if good(event) {
				seen[namespaceOf(event)] = true
			}
			return len(seen) == n
		})
	}
}

// timed is the time from the beginning of act to the end of wait, both of
// which it returns after.
func timed(ctx context.Context, act, wait func(context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	acted := make(chan error, 1)
	began := time.Now()
	go func() {
		err := act(ctx)
		if err != nil {
			cancel(err)
		}
		acted <- err
	}()
	err := wait(ctx)
	took := time.Since(began)
	if err != nil {
		cancel(err)
	}
	return took, errors.Join(err, <-acted)
}

func nameOf(event watch.Event) string {
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return ""
	}
	return object.GetName()
}

func namespaceOf(event watch.Event) string {
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return ""
	}
	return object.GetNamespace()
}

func added(event watch.Event) bool { return event.Type == watch.Added }

// inTarget says yes to a Secret in a target namespace whose payload is of
// version.
func inTarget(version string) func(watch.Event) bool {
	return func(event watch.Event) bool {
		secret, ok := event.Object.(*corev1.Secret)
		return ok && event.Type != watch.Deleted && strings.HasPrefix(secret.Namespace, targets) && string(secret.Data["version"]) == version
	}
}

// happens says yes to an event of that kind in namespace.
func happens(kind watch.EventType, namespace string) func(watch.Event) bool {
	return func(event watch.Event) bool { return event.Type == kind && namespaceOf(event) == namespace }
}
