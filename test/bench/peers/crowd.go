package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// follow compares an edit of the Secret with as many bare patches. There are as
// many others, which get these, and use a Secret that nobody edits.
func (s *stage) follow(ctx context.Context, name measure.Name, of followers) error {
	if err := s.addCrowd(ctx); err != nil {
		return err
	}
	events, err := measure.Open(ctx, of.client, of.resource, s.options.crowdNamespace(), "")
	if err != nil {
		return err
	}
	defer events.Stop()
	var late *lateError
	if err := s.assemble(ctx, of, events); errors.As(err, &late) {
		s.never(name, nil, fmt.Sprintf(": only %d of %d are at work", late.seen, late.of))
		return nil
	} else if err != nil {
		return err
	}
	return s.compare(ctx, name, s.options.rounds,
		func(ctx context.Context) (time.Duration, error) {
			return s.untilMarked(ctx, of, events, s.options.shared(), s.editSource(s.options.crowdNamespace(), s.version()))
		},
		func(ctx context.Context) (time.Duration, error) {
			version := s.version()
			return s.untilMarked(ctx, of, events, s.options.bare(), func(ctx context.Context) error {
				return measure.Parallel(ctx, s.options.clones, func(ctx context.Context, i int) error {
					return of.touch(ctx, member(s.options.bare(), i), version)
				})
			})
		}, s.results.Compared)
}

// member is the name of one that uses that Secret.
func member(secret string, i int) string { return fmt.Sprintf("%s-%05d", secret, i) }

// addCrowd makes the namespace with both Secrets, once.
func (s *stage) addCrowd(ctx context.Context) error {
	if s.crowd {
		return nil
	}
	s.crowd = true
	namespace := s.options.crowdNamespace()
	if err := s.made.add(ctx, s.client, namespace, nil); err != nil {
		return err
	}
	if err := measure.Create(ctx, s.client, s.source(namespace, "0")); err != nil {
		return err
	}
	return measure.Create(ctx, s.client, measure.Secret(namespace, s.options.bare(), "0"))
}

// assemble makes followers of both Secrets, and waits until all are at work and
// the controller has done with them what it does at first.
func (s *stage) assemble(ctx context.Context, of followers, events *measure.Stream) error {
	n := s.options.clones
	measure.Progress("making %d %s, and waiting up to %s for them", 2*n, of.resource, s.options.within)
	for _, secret := range []string{s.options.shared(), s.options.bare()} {
		err := measure.Parallel(ctx, n, func(ctx context.Context, i int) error { return of.create(ctx, member(secret, i), secret) })
		if err != nil {
			return err
		}
	}
	waiting, cancel := context.WithTimeoutCause(ctx, s.options.within, errLate)
	defer cancel()
	working := map[types.UID]bool{}
	err := events.Until(waiting, func(event watch.Event) bool {
		if uid, _, _, noted := of.read(event.Object); noted {
			working[uid] = true
		}
		return len(working) == 2*n
	})
	if errors.Is(err, errLate) {
		return &lateError{len(working), 2 * n}
	}
	return errors.Join(err, s.atRest(ctx, events))
}

// untilMarked times act until all that use the Secret bear another mark, and
// then waits for rest.
func (s *stage) untilMarked(
	ctx context.Context, of followers, events *measure.Stream, secret string, act func(context.Context) error,
) (time.Duration, error) {
	marking := measure.NewMarking()
	objects, err := of.list(ctx)
	if err != nil {
		return 0, err
	}
	for _, object := range objects {
		if uid, name, mark, _ := of.read(object); strings.HasPrefix(name, secret+"-") {
			marking.Before[uid] = mark
		}
	}
	took, err := marking.Timed(ctx, act, events, func(event watch.Event) (types.UID, string, bool) {
		uid, _, mark, noted := of.read(event.Object)
		return uid, mark, noted
	})
	if errors.Is(err, errLate) {
		return 0, &lateError{marking.Marked(), len(marking.Before)}
	}
	return took, errors.Join(err, s.atRest(ctx, events))
}
