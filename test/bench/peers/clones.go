package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// The rows about clones.
func (s *stage) fanOutName() measure.Name {
	n := s.options.clones
	return measure.Name{Key: fmt.Sprintf("fan-out/clones=%d", n), What: fmt.Sprintf("source edit to the last of %d clones", n)}
}

var (
	newNamespace = measure.Name{Key: "new-namespace", What: "new namespace to its clone"}
	cloneDeleted = measure.Name{Key: "heal/deleted", What: "clone deleted to restored"}
	cloneEdited  = measure.Name{Key: "heal/edited", What: "clone edited to restored"}
)

// clones measures the rows about clones that are wanted. Without any clone there
// is nothing to measure.
func (s *stage) clones(ctx context.Context) error {
	ours, err := s.secrets(ctx, s.options.shared())
	if err != nil {
		return err
	}
	defer ours.Stop()
	own, err := s.secrets(ctx, s.options.bare())
	if err != nil {
		return err
	}
	defer own.Stop()
	var late *lateError
	if err := s.setTargets(ctx, ours); errors.As(err, &late) {
		s.noClones(fmt.Sprintf(": only %d of %d namespaces got a clone at all", late.seen, late.of))
		return nil
	} else if err != nil {
		return err
	}
	if s.options.wants(clones) {
		if err := s.fanOut(ctx, ours, own); err != nil {
			return err
		}
	}
	if !s.options.wants(repairs) {
		return nil
	}
	if err := s.newcomers(ctx, ours, own); err != nil {
		return err
	}
	return s.heals(ctx, ours, own)
}

// noClones adds the wanted rows about clones when some clones never came.
func (s *stage) noClones(how string) {
	if s.options.wants(clones) {
		s.never(s.fanOutName(), nil, how)
	}
	if s.options.wants(repairs) {
		for _, name := range []measure.Name{newNamespace, cloneDeleted, cloneEdited} {
			s.never(name, nil, how)
		}
	}
}

// setTargets makes the source first and then the namespaces, since some
// controllers act on namespaces alone, and waits for all clones.
func (s *stage) setTargets(ctx context.Context, ours *measure.Stream) error {
	o := s.options
	measure.Progress("making %d namespaces, and waiting up to %s for a clone in each", o.clones, o.within)
	if err := s.made.add(ctx, s.client, o.sourceNamespace(), nil); err != nil {
		return err
	}
	if err := measure.Create(ctx, s.client, s.source(o.sourceNamespace(), "0")); err != nil {
		return err
	}
	err := measure.Parallel(ctx, o.clones, func(ctx context.Context, i int) error {
		if err := s.made.add(ctx, s.client, o.target(i), o.preset.namespace); err != nil {
			return err
		}
		return measure.Create(ctx, s.client, measure.Secret(o.target(i), o.bare(), "0"))
	})
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, o.within, errLate)
	defer cancel()
	if err := each(ours, o.clones, s.cloned("0"))(waiting); err != nil {
		return err
	}
	return s.atRest(ctx, ours)
}

// cloned says yes to a clone of that version, and not to the source.
func (s *stage) cloned(version string) func(watch.Event) bool {
	return func(event watch.Event) bool {
		secret, ok := event.Object.(*corev1.Secret)
		return ok && event.Type != watch.Deleted && secret.Namespace != s.options.sourceNamespace() && string(secret.Data["version"]) == version
	}
}

func (s *stage) fanOut(ctx context.Context, ours, own *measure.Stream) error {
	o := s.options
	return s.compare(ctx, s.fanOutName(), o.rounds,
		func(ctx context.Context) (time.Duration, error) {
			version := s.version()
			took, err := measure.Timed(ctx, s.editSource(o.sourceNamespace(), version), each(ours, o.clones, s.cloned(version)))
			return took, errors.Join(err, s.atRest(ctx, ours))
		},
		func(ctx context.Context) (time.Duration, error) {
			version := s.version()
			return measure.Timed(ctx, func(ctx context.Context) error {
				return measure.Parallel(ctx, o.clones, func(ctx context.Context, i int) error {
					return measure.Update(ctx, s.client, measure.Secret(o.target(i), o.bare(), version))
				})
			}, own.Each(o.clones, s.cloned(version)))
		}, s.results.Compared)
}

// newcomers times from the API server's answer to the creation of a namespace. The
// floor is a Secret that is created once a watch shows the namespace.
func (s *stage) newcomers(ctx context.Context, ours, own *measure.Stream) error {
	spaces, err := measure.Open(ctx, s.client.CoreV1().RESTClient(), "namespaces", "", "")
	if err != nil {
		return err
	}
	defer spaces.Stop()
	o := s.options
	return s.compare(ctx, newNamespace, o.samples,
		func(ctx context.Context) (time.Duration, error) {
			name := o.targets() + "new-" + s.version()
			if err := s.made.add(ctx, s.client, name, o.preset.namespace); err != nil {
				return 0, err
			}
			began := time.Now()
			err := ours.Until(ctx, measure.Happens(watch.Added, name))
			return time.Since(began), err
		},
		func(ctx context.Context) (time.Duration, error) {
			name := o.prefix + "-bare-" + s.version()
			if err := s.made.add(ctx, s.client, name, nil); err != nil {
				return 0, err
			}
			began := time.Now()
			seen := func(event watch.Event) bool { return event.Type == watch.Added && measure.NameOf(event) == name }
			if err := spaces.Until(ctx, seen); err != nil {
				return 0, err
			}
			if err := measure.Create(ctx, s.client, measure.Secret(name, o.bare(), "0")); err != nil {
				return 0, err
			}
			err := own.Until(ctx, measure.Happens(watch.Added, name))
			return time.Since(began), err
		}, s.results.Spreads)
}

// heals damages the clone of one namespace after the other. The floor is the bench
// doing the same to a Secret of its own, by way of a watch too.
func (s *stage) heals(ctx context.Context, ours, own *measure.Stream) error {
	shared, bare, next := s.options.shared(), s.options.bare(), 0
	samples := min(s.options.samples, s.options.clones)
	err := s.compare(ctx, cloneEdited, samples,
		s.healing(&next, s.edits(shared), restored(ours, measure.IsTampered)),
		s.healing(&next, s.edits(bare), own.Repaired(watch.Modified, s.rewrites, watch.Modified)), s.results.Spreads)
	if err != nil {
		return err
	}
	return s.compare(ctx, cloneDeleted, samples,
		s.healing(&next, s.deletes(shared), restored(ours, isDeleted)),
		s.healing(&next, s.deletes(bare), own.Repaired(watch.Deleted, s.recreates, watch.Added)), s.results.Spreads)
}

// restored waits until the damage is seen, and then that it is repaired: a
// controller may have written to the clone for other reasons before.
func restored(events *measure.Stream, damaged func(watch.Event) bool) measure.Step {
	return func(ctx context.Context, namespace string) error {
		err := events.Until(ctx, func(event watch.Event) bool { return measure.NamespaceOf(event) == namespace && damaged(event) })
		if err != nil {
			return err
		}
		return events.Until(ctx, func(event watch.Event) bool {
			return measure.NamespaceOf(event) == namespace && !isDeleted(event) && !measure.IsTampered(event)
		})
	}
}

func isDeleted(event watch.Event) bool { return event.Type == watch.Deleted }

func (s *stage) healing(next *int, damage, repair measure.Step) measure.Timer {
	return func(ctx context.Context) (time.Duration, error) {
		namespace := s.options.target(*next / 2 % s.options.clones) // the floor and ours take turns
		*next++
		if err := damage(ctx, namespace); err != nil {
			return 0, err
		}
		began := time.Now()
		err := repair(ctx, namespace)
		return time.Since(began), err
	}
}

func (s *stage) deletes(name string) measure.Step {
	return func(ctx context.Context, namespace string) error {
		return s.client.CoreV1().Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	}
}

func (s *stage) edits(name string) measure.Step {
	return func(ctx context.Context, namespace string) error {
		_, err := s.client.CoreV1().Secrets(namespace).Patch(ctx, name, types.MergePatchType, []byte(measure.Tampering), metav1.PatchOptions{})
		return err
	}
}

func (s *stage) recreates(ctx context.Context, namespace string) error {
	return measure.Create(ctx, s.client, measure.Secret(namespace, s.options.bare(), "0"))
}

func (s *stage) rewrites(ctx context.Context, namespace string) error {
	return measure.Update(ctx, s.client, measure.Secret(namespace, s.options.bare(), "0"))
}
