package main

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// election is the floor of a failover: a pair of bare client-go electors, timed
// as Headwater's, whose only work is one write.
type election struct {
	arena *arena
	// abdicate ends the first one; won learns when the second has written.
	abdicate, stop context.CancelFunc
	won            chan error
}

// newElection returns once the first leads and the second waits. A graceful
// first one gives the lease back.
func (a *arena) newElection(ctx context.Context, graceful bool) (*election, error) {
	ctx = klog.NewContext(ctx, klog.Logger{}) // nobody looks at how they get on
	e := &election{arena: a, won: make(chan error, 1)}
	leads := make(chan struct{}, 1)
	firstCtx, abdicate := context.WithCancel(ctx)
	secondCtx, stop := context.WithCancel(ctx)
	e.abdicate, e.stop = abdicate, stop
	first, err := a.candidate("first", graceful, func(context.Context) { leads <- struct{}{} })
	if err != nil {
		return nil, err
	}
	second, err := a.candidate("second", true, func(ctx context.Context) {
		e.won <- measure.Update(ctx, a.peer, measure.Secret(sourceNamespace, bare, "0"))
	})
	if err != nil {
		return nil, err
	}
	go first.Run(firstCtx)
	select {
	case <-leads:
		go second.Run(secondCtx)
		return e, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (a *arena) candidate(name string, graceful bool, lead func(context.Context)) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: sourceNamespace, Name: "bench"},
			Client:     a.Admin.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: a.options.lease, RenewDeadline: leader.RenewDeadline(a.options.lease), RetryPeriod: leader.RetryPeriod,
		ReleaseOnCancel: graceful, Name: "bench",
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: lead, OnStoppedLeading: func() {}},
	})
}

// decide ends the first one, and times until the second has written.
func (e *election) decide(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	e.abdicate()
	defer e.stop()
	select {
	case err := <-e.won:
		return time.Since(began), err
	case <-time.After(measure.Patience):
		return 0, errors.New("no bare elector followed the other")
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
