package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headwater-k8s/headwater/sync/survey"
	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// fanOut compares a source edit with as many bare updates, and counts what it
// asks of the API server.
func (a *arena) fanOut(ctx context.Context) error {
	var asked requests
	name := measure.Name{Key: fmt.Sprintf("fan-out/clones=%d", a.clones), What: fmt.Sprintf("source edit to the last of %d clones", a.clones)}
	if !a.options.protected {
		name = measure.Name{Key: "unprotected-" + name.Key, What: name.What + ", without protection"}
	}
	if err := lab.Eventually(ctx, a.hasRecalled); err != nil {
		return err
	}
	err := a.compare(ctx, name, a.clones, fanOutBudget,
		func(ctx context.Context) (time.Duration, error) {
			mark := a.Cluster.Mark()
			took, err := a.untilCloned(ctx)
			if err != nil {
				return 0, err
			}
			if err := a.headwater.Idle(ctx); err != nil {
				return 0, err
			}
			counted, err := a.since(ctx, mark)
			asked.writes, asked.reads = asked.writes+counted.writes, asked.reads+counted.reads
			return took, err
		}, a.bareFanOut)
	if err != nil {
		return err
	}
	a.results.Count(measure.Name{Key: name.Key + "/writes-per-clone", What: fmt.Sprintf("writes per clone changed, of %d", a.clones)},
		float64(asked.writes)/float64(a.clones*a.rounds(a.clones)), 1, measure.Plain("writes"))
	a.results.Count(measure.Name{Key: name.Key + "/reads", What: "reads other than watches meanwhile"}, float64(asked.reads), 0, measure.Plain("reads"))
	return nil
}

// hasRecalled is nil once the leader has read, as it does once, what the one before removed.
func (a *arena) hasRecalled(ctx context.Context) error {
	read, err := a.Cluster.Since(ctx, 0, func(r cluster.Request) bool { return r.Verb == "get" && r.Name == survey.RemovalsName })
	if err == nil && len(read) == 0 {
		err = errors.New("the leader has yet to read ConfigMap " + survey.RemovalsName)
	}
	return err
}

// untilCloned edits the source and times it until the last clone is written.
func (a *arena) untilCloned(ctx context.Context) (time.Duration, error) {
	clones, err := a.secrets(ctx, shared)
	if err != nil {
		return 0, err
	}
	defer clones.Stop()
	version := a.version()
	return measure.Timed(ctx, a.editSource(sourceNamespace, version), clones.Each(a.clones, inTarget(version)))
}

func (a *arena) bareFanOut(ctx context.Context) (time.Duration, error) {
	written, err := a.secrets(ctx, bare)
	if err != nil {
		return 0, err
	}
	defer written.Stop()
	version := a.version()
	return measure.Timed(ctx, func(ctx context.Context) error {
		return measure.Parallel(ctx, a.clones, func(ctx context.Context, i int) error {
			return measure.Update(ctx, a.peer, bareClone(target(i), version))
		})
	}, written.Each(a.clones, inTarget(version)))
}
