package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// newcomers makes namespaces and times the arrival of a Secret in each.
type newcomers struct {
	arena                *arena
	clones               []*measure.Stream // of each rule
	bareOnes, namespaces *measure.Stream
}

func (a *arena) newcomers(ctx context.Context) (*newcomers, error) {
	n := &newcomers{arena: a}
	var err error
	for _, name := range a.cloned() {
		clones, err := a.secrets(ctx, name)
		if err != nil {
			return nil, err
		}
		n.clones = append(n.clones, clones)
	}
	if n.bareOnes, err = a.secrets(ctx, bare); err != nil {
		return nil, err
	}
	n.namespaces, err = measure.Open(ctx, a.Admin.CoreV1().RESTClient(), "namespaces", metav1.NamespaceAll, "")
	return n, err
}

func (n *newcomers) stop() {
	for _, s := range append(n.clones, n.bareOnes, n.namespaces) {
		s.Stop()
	}
}

// cloned is the time from the API server's answer to the creation of a
// namespace until its clones are there.
func (n *newcomers) cloned(ctx context.Context) (time.Duration, error) {
	return n.add(ctx, "bench-new", func(ctx context.Context, name string) error {
		for _, clones := range n.clones {
			if err := clones.Until(ctx, measure.Happens(watch.Added, name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// bare is the same for a namespace that no rule selects: the bench itself
// watches for it and creates the Secret.
func (n *newcomers) bare(ctx context.Context) (time.Duration, error) {
	return n.add(ctx, "bench-bare", func(ctx context.Context, name string) error {
		err := n.namespaces.Until(ctx, func(event watch.Event) bool { return event.Type == watch.Added && measure.NameOf(event) == name })
		if err != nil {
			return err
		}
		if err := measure.Create(ctx, n.arena.peer, bareClone(name, "0")); err != nil {
			return err
		}
		return n.bareOnes.Until(ctx, measure.Happens(watch.Added, name))
	})
}

func (n *newcomers) add(ctx context.Context, prefix string, arrival measure.Step) (time.Duration, error) {
	n.arena.versions++
	name := fmt.Sprintf("%s-%05d", prefix, n.arena.versions)
	if err := n.arena.Namespaces(ctx, name); err != nil {
		return 0, err
	}
	began := time.Now()
	err := arrival(ctx, name)
	return time.Since(began), err
}

// newNamespaces measures new namespaces while nothing else happens.
func (a *arena) newNamespaces(ctx context.Context) error {
	n, err := a.newcomers(ctx)
	if err != nil {
		return err
	}
	defer n.stop()
	return a.latency(ctx, measure.Name{Key: "new-namespace/idle", What: "new namespace to its clone, idle"}, n.cloned, n.bare)
}

// newNamespacesMeanwhile measures them while every clone is written. The
// floor is taken while every bare Secret is.
func (a *arena) newNamespacesMeanwhile(ctx context.Context) error {
	n, err := a.newcomers(ctx)
	if err != nil {
		return err
	}
	defer n.stop()
	var ours, floor []time.Duration
	for range a.options.rounds {
		took, err := during(ctx, a.bareFanOut, n.bare)
		if err != nil {
			return err
		}
		floor = append(floor, took...)
		if took, err = during(ctx, a.untilCloned, n.cloned); err != nil {
			return err
		}
		ours = append(ours, took...)
	}
	a.results.Latency(measure.Name{
		Key:  fmt.Sprintf("new-namespace/meanwhile/clones=%d", a.clones),
		What: fmt.Sprintf("new namespace to its clone, during a fan-out to %d", a.clones),
	}, ours, floor, newNamespaceMeanwhileBudget)
	return nil
}

// during repeats sample as long as load goes on.
func during(ctx context.Context, load, sample measure.Timer) ([]time.Duration, error) {
	ended := make(chan error, 1)
	go func() {
		_, err := load(ctx)
		ended <- err
	}()
	var all []time.Duration
	for {
		took, err := sample(ctx)
		if err != nil {
			return nil, errors.Join(err, <-ended)
		}
		all = append(all, took)
		select {
		case err := <-ended:
			return all, err
		default:
		}
	}
}
