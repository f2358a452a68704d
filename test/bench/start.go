package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
)

// restTime is how long Headwater must write nothing after a start.
const restTime = time.Second

// starts times starts with everything there and nothing changed, and counts
// what Headwater writes then.
func (a *arena) starts(ctx context.Context) error {
	name := measure.Name{Key: fmt.Sprintf("start/clones=%d", a.total()), What: fmt.Sprintf("start to ready, at %d clones", a.total())}
	writes := 0
	took, base, err := measure.Alternate(ctx, a.options.rounds, func(ctx context.Context) (time.Duration, error) {
		took, wrote, err := a.restart(ctx)
		writes += wrote
		return took, err
	}, a.bareRead)
	if err != nil {
		return fmt.Errorf("%s: %w", name.What, err)
	}
	budget := startBudget
	if a.total() >= large {
		budget = largeStartBudget
	}
	a.results.Within(name, took, base, budget)
	a.results.Count(measure.Name{Key: "start/writes", What: "writes after a restart with nothing changed"}, float64(writes), 0, measure.Plain("writes"))
	return nil
}

// restart ends Headwater and times the start of another one until it is ready;
// and counts its writes until it rests.
func (a *arena) restart(ctx context.Context) (took time.Duration, writes int, err error) {
	a.headwater.Stop()
	before := a.Cluster.Mark()
	began := time.Now()
	if a.headwater, err = a.Start(ctx); err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	if err := a.headwater.Idle(ctx); err != nil {
		return 0, 0, err
	}
	if err := lab.Holds(ctx, restTime, func(context.Context) error { return a.headwater.Failure() }); err != nil {
		return 0, 0, err
	}
	asked, err := a.since(ctx, before)
	return took, asked.writes, err
}

// bareRead reads what Headwater reads at its start: the clones in full, and
// the metadata of namespaces and of all other Secrets and ConfigMaps.
func (a *arena) bareRead(ctx context.Context) (time.Duration, error) {
	light, err := metadata.NewForConfig(a.Cluster.ConfigFor(lab.ServiceAccount))
	if err != nil {
		return 0, err
	}
	others := metav1.ListOptions{LabelSelector: mark.CloneLabel + "!=true", ResourceVersion: "0"}
	reads := []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := a.peer.CoreV1().Secrets("").List(ctx, metav1.ListOptions{LabelSelector: mark.CloneLabel + "=true", ResourceVersion: "0"})
			return err
		},
	}
	for resource, options := range map[string]metav1.ListOptions{"namespaces": {ResourceVersion: "0"}, "secrets": others, "configmaps": others} {
		reads = append(reads, func(ctx context.Context) error {
			_, err := light.Resource(corev1.SchemeGroupVersion.WithResource(resource)).List(ctx, options)
			return err
		})
	}
	began := time.Now()
	err = measure.Parallel(ctx, len(reads), func(ctx context.Context, i int) error { return reads[i](ctx) })
	return time.Since(began), err
}
