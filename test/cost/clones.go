package main

import (
	"context"
	"fmt"
	"time"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
)

// clones measures at each size what the clones made, what is held, and what a
// change of all sources takes. The namespaces stay the same; what grows is the
// number of sources.
func (y *yard) clones(ctx context.Context) error {
	if err := y.start(ctx, y.Run); err != nil {
		return err
	}
	for _, size := range y.options.sizes {
		if err := y.grow(ctx, size); err != nil {
			return err
		}
		changed, err := y.spend(ctx, y.changeAll)
		if err != nil {
			return err
		}
		if err := y.held(ctx, perClone, size); err != nil {
			return err
		}
		if err := y.start(ctx, y.metered()); err != nil {
			return err
		}
		out, in := y.proxy.Passed()
		if _, err := y.changeAll(ctx, y.Cluster.Mark()); err != nil {
			return err
		}
		if err := y.idle(ctx); err != nil {
			return err
		}
		outNow, inNow := y.proxy.Passed()
		changed[sent], changed[received] = float64(outNow-out), float64(inNow-in)
		y.book(perWrite, size, changed)
		if err := y.start(ctx, y.Run); err != nil {
			return err
		}
	}
	return nil
}

// grow adds sources until there are so many clones.
func (y *yard) grow(ctx context.Context, size int) error {
	have := len(y.sources)
	more := size/y.options.namespaces - have
	for i := range more {
		y.sources = append(y.sources, fmt.Sprintf("shared-%04d", have+i))
	}
	made, err := y.spend(ctx, func(ctx context.Context, mark cluster.Mark) (time.Time, error) {
		for _, name := range y.sources[have:] {
			if err := measure.Create(ctx, y.Admin, source(name, usualPayload)); err != nil {
				return time.Time{}, err
			}
		}
		return y.written(ctx, mark, "secrets", more*y.options.namespaces)
	})
	if err != nil {
		return err
	}
	y.book(perSync, more*y.options.namespaces, made)
	return nil
}

// changeAll edits every source and waits until every clone is written.
func (y *yard) changeAll(ctx context.Context, mark cluster.Mark) (time.Time, error) {
	for _, name := range y.sources {
		if err := measure.Update(ctx, y.Admin, source(name, usualPayload)); err != nil {
			return time.Time{}, err
		}
	}
	return y.written(ctx, mark, "secrets", len(y.sources)*y.options.namespaces)
}
