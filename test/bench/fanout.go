package main

import (
	"context"
	"fmt"
	"time"
)

// fanOut compares a source edit with as many bare updates, and counts what it
// asks of the API server.
func (a *arena) fanOut(ctx context.Context) error {
	var asked requests
	what := fmt.Sprintf("source edit to the last of %d clones", a.clones)
	err := a.compare(ctx, what, a.clones, 1.25,
		func(ctx context.Context) (time.Duration, error) {
			mark := a.cluster.Mark()
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
	a.results.count(fmt.Sprintf("writes per clone changed, of %d", a.clones), float64(asked.writes)/float64(a.clones*a.rounds(a.clones)), 1, "")
	a.results.count("reads other than watches meanwhile", float64(asked.reads), 0, "")
	return nil
}

// untilCloned edits the source and times it until the last clone is written.
func (a *arena) untilCloned(ctx context.Context) (time.Duration, error) {
	clones, err := a.secrets(ctx, shared)
	if err != nil {
		return 0, err
	}
	defer clones.stop()
	version := a.version()
	return timed(ctx, a.editSource(sourceNamespace, version), clones.each(a.clones, inTarget(version)))
}

func (a *arena) bareFanOut(ctx context.Context) (time.Duration, error) {
	written, err := a.secrets(ctx, bare)
	if err != nil {
		return 0, err
	}
	defer written.stop()
	version := a.version()
	return timed(ctx, func(ctx context.Context) error {
		return parallel(ctx, a.clones, func(ctx context.Context, i int) error {
			return update(ctx, a.peer, secret(target(i), bare, version))
		})
	}, written.each(a.clones, inTarget(version)))
}
