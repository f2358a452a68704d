package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// restTime is how long nothing must happen before something is timed.
const restTime = 2 * time.Second

// stage is where a controller is watched at its work.
type stage struct {
	options  options
	client   *kubernetes.Clientset
	made     *namespaces
	results  *measure.Table
	versions int
	crowd    bool // is there
}

func (s *stage) version() string {
	s.versions++
	return strconv.Itoa(s.versions)
}

// source is the Secret to be cloned or followed, in that namespace.
func (s *stage) source(namespace, version string) *corev1.Secret {
	secret := measure.Secret(namespace, s.options.shared(), version)
	if namespace == s.options.sourceNamespace() {
		secret.Annotations, secret.Labels = s.options.preset.source, s.options.preset.labels
	}
	return secret
}

// editSource changes its data alone: controllers keep marks of their own on it.
func (s *stage) editSource(namespace, version string) func(context.Context) error {
	return func(ctx context.Context) error {
		patch, err := json.Marshal(map[string]any{"data": measure.Secret(namespace, s.options.shared(), version).Data})
		if err != nil {
			return err
		}
		_, err = s.client.CoreV1().Secrets(namespace).Patch(ctx, s.options.shared(), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

// secrets watches those of that name in all namespaces.
func (s *stage) secrets(ctx context.Context, name string) (*measure.Stream, error) {
	return measure.Open(ctx, s.client.CoreV1().RESTClient(), "secrets", metav1.NamespaceAll, name)
}

// atRest waits until the stream shows nothing any more, or as long as is waited
// for anything.
func (s *stage) atRest(ctx context.Context, events *measure.Stream) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.within)
	defer cancel()
	return ignoreLate(events.Rest(ctx, restTime))
}

func ignoreLate(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// patiently bounds do by how long is waited for anything.
func (s *stage) patiently(do measure.Timer) measure.Timer {
	return func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, s.options.within, errLate)
		defer cancel()
		return do(ctx)
	}
}

// errLate is why something was not waited for any longer.
var errLate = fmt.Errorf("too late: %w", context.DeadlineExceeded)

// never adds a row of what did not happen in time, and how far it came.
func (s *stage) never(of measure.Name, floor []time.Duration, how string) {
	s.results.Instead(of, fmt.Sprintf("never within %s%s", s.options.within, how), floor)
}

// compare takes ours and floor in turn, until ours fails to happen.
func (s *stage) compare(ctx context.Context, of measure.Name, times int, ours, floor measure.Timer,
	add func(measure.Name, []time.Duration, []time.Duration),
) error {
	var took, base []time.Duration
	ours = s.patiently(ours)
	for range times {
		one, err := floor(ctx)
		if err != nil {
			return fmt.Errorf("%s: floor: %w", of.What, err)
		}
		base = append(base, one)
		one, err = ours(ctx)
		var late *lateError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isRefused(err):
			s.results.Instead(of, "refused by an admission check", base)
			return nil
		case errors.As(err, &late):
			s.never(of, base, fmt.Sprintf(": %d of %d", late.seen, late.of))
			return nil
		case errors.Is(err, errLate):
			s.never(of, base, after(len(took)))
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", of.What, err)
		}
		took = append(took, one)
	}
	add(of, took, base)
	return nil
}

// after says how often it went well before it did not.
func after(times int) string {
	if times == 0 {
		return ""
	}
	return fmt.Sprintf(", after %d times that it was", times)
}

// lateError says how many had arrived when the time was up.
type lateError struct{ seen, of int }

func (e *lateError) Error() string { return fmt.Sprintf("%d of %d in time", e.seen, e.of) }

// isRefused says whether somebody protects what is to be damaged.
func isRefused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// each waits until good held in n namespaces, and tells in how many it did when
// the time is up.
func each(events *measure.Stream, n int, good func(watch.Event) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		seen := map[string]bool{}
		err := events.Until(ctx, func(event watch.Event) bool {
			if good(event) {
				seen[measure.NamespaceOf(event)] = true
			}
			return len(seen) == n
		})
		if errors.Is(err, errLate) {
			return &lateError{len(seen), n}
		}
		return err
	}
}
