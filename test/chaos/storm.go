package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	// patience bounds how long the cluster may take to come to what it must be. A
	// leader that was killed is replaced when its lease ends, after 15 s, and
	// retries pause for minutes at the most where nothing changes.
	patience = 3 * time.Minute
	// undisturbed is for how long nothing is written once all is at rest.
	undisturbed = time.Second
	// between is how long, at the most, one fault begins after another.
	between = 6 * time.Second
)

// storm is the cluster, the three replicas, and everything that happens to them.
type storm struct {
	options options
	cluster *cluster.Cluster
	world   *world
	fleet   *fleet
	// controlPlane is locked by the fault that breaks the control plane.
	controlPlane sync.Mutex
	// rand is the faults' own, so that what is broken does not depend on how much
	// work was done meanwhile.
	rand   *rand.Rand
	report *report
}

func newStorm(ctx context.Context, c *cluster.Cluster, o options) (*storm, error) {
	site, err := lab.NewSite(ctx, c, o.binary, o.rbac)
	if err != nil {
		return nil, err
	}
	r := &report{seed: o.seed, began: time.Now(), faults: map[string]int{}, steps: map[string]int{}}
	w, err := newWorld(ctx, site, o, r)
	if err != nil {
		return nil, err
	}
	f, err := newFleet(site)
	if err != nil {
		return nil, err
	}
	return &storm{
		options: o, cluster: c, world: w, fleet: f, report: r,
		rand: rand.New(rand.NewPCG(o.seed, 1)),
	}, nil
}

func (s *storm) end() { s.fleet.end() }

// blow plays every round.
func (s *storm) blow(ctx context.Context) error {
	say("seed %d", s.options.seed)
	go s.world.rollouts.follow(ctx)
	go s.world.stages.follow(ctx)
	for round := 1; s.more(round); round++ {
		say("round %d", round)
		if err := s.round(ctx); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return s.judgeHistory(ctx)
}

func (s *storm) more(round int) bool {
	if s.options.duration > 0 {
		return time.Since(s.report.began) < s.options.duration
	}
	return round <= s.options.rounds
}

// round breaks things while work is done, puts them right, and looks whether
// the cluster comes to rest as it must.
func (s *storm) round(ctx context.Context) error {
	if err := s.rests(ctx); err != nil { // so that the first fault has something to break
		return err
	}
	before, err := s.world.look(ctx)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.world.work(working)
	}()
	err = s.breakThings(ctx)
	stop()
	<-done
	if err := errors.Join(err, until(ctx, s.world.disperse)); err != nil {
		return err
	}
	began := time.Now()
	if err := s.rests(ctx); err != nil {
		s.report.violate("not at rest after %s: %v", patience, err)
		return errViolated
	}
	s.report.converged = append(s.report.converged, time.Since(began))
	say("at rest after %s", time.Since(began).Round(time.Millisecond))
	if err := until(ctx, s.world.stages.read); err != nil {
		return err
	}
	after, err := s.world.look(ctx)
	if err != nil {
		return err
	}
	for _, wrong := range judgeRestarts(before, after) {
		s.report.violate("%s", wrong)
	}
	return nil
}

// breakThings plays the faults of a round, which may overlap, and returns once
// all that was broken is whole.
func (s *storm) breakThings(ctx context.Context) error {
	faults := s.faults()
	repairing := make(chan error, s.options.faults)
	for range s.options.faults {
		fault := faults[s.rand.IntN(len(faults))]
		pause := time.Duration(s.rand.Int64N(int64(between)))
		play := fault.strikes(s.rand)
		s.report.faults[fault.name]++
		say("fault: %s", fault.name)
		go func() { repairing <- play(ctx) }()
		if err := pauseFor(ctx, pause); err != nil {
			return err
		}
	}
	var failures []error
	for range s.options.faults {
		failures = append(failures, <-repairing)
	}
	return errors.Join(append(failures, s.fleet.whole())...)
}

// rests waits until all is as it must be, and stays so without a write.
func (s *storm) rests(ctx context.Context) error { return until(ctx, s.atRest) }

func (s *storm) atRest(ctx context.Context) error {
	if err := s.fleet.ready(ctx); err != nil {
		return err
	}
	if err := s.world.judge(ctx); err != nil {
		return err
	}
	mark := s.cluster.Mark()
	if err := pauseFor(ctx, undisturbed); err != nil {
		return err
	}
	writes, err := s.cluster.Since(ctx, mark, isWork)
	if err == nil && len(writes) > 0 {
		err = fmt.Errorf("%d writes though all is at rest, the first %+v", len(writes), writes[0])
	}
	return err
}

// until tries again, for as long as patience lasts, while do fails: there may be
// nobody to answer.
func until(ctx context.Context, do func(context.Context) error) error {
	return lab.Within(ctx, patience, do)
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func say(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
}
