package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	// protectWithin is how long it may take until protection is proven.
	protectWithin = time.Minute
	// damageEvery is how often a clone is edited, so that there is always
	// something that a leader has to repair.
	damageEvery = 50 * time.Millisecond
)

// ending is a way in which a replica ends.
type ending struct {
	key, what string
	graceful  bool
	budget    time.Duration
	do        func(*lab.Replica)
}

func endings() []ending {
	return []ending{
		{"stopped", "leader stopped", true, gracefulBudget, func(r *lab.Replica) { r.Stop() }},
		{"killed", "leader killed", false, killedBudget, func(r *lab.Replica) { r.Kill() }},
	}
}

// failovers measure from the end of the leader until the next one writes, and
// what comes of protected writes meanwhile. The floor are bare electors. Then
// replicas end that alone protect, without policies beside them.
func (a *arena) failovers(ctx context.Context) (err error) {
	may, err := a.editor(ctx, allowed)
	if err != nil {
		return err
	}
	mayNot, err := a.editor(ctx, forbidden)
	if err != nil {
		return err
	}
	a.headwater.Stop()
	if err := a.failoversOfLeaders(ctx, may, mayNot); err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	if err := a.failoversOfWebhooks(ctx, may, mayNot); err != nil {
		return fmt.Errorf("failover of the webhook alone: %w", err)
	}
	return a.start(ctx)
}

func (a *arena) failoversOfLeaders(ctx context.Context, may, mayNot kubernetes.Interface) (err error) {
	f, err := a.newFleet(ctx, a.Run.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.end(ctx)) }()
	if err := f.protects(ctx, admissionregistrationv1.Ignore); err != nil {
		return err
	}
	for _, ending := range endings() {
		writes := a.newTraffic(ctx, may, mayNot)
		took, floor, err := f.succeed(ctx, ending)
		judged := writes.stop()
		if err != nil {
			return err
		}
		a.results.AtMost(measure.Name{
			Key: "failover/" + ending.key, What: ending.what + " to the first write of the next",
		}, took, floor, ending.budget)
		a.results.Count(measure.Name{
			Key: "failover/" + ending.key + "/misjudged", What: fmt.Sprintf("writes misjudged or failed meanwhile, of %d", judged.all),
		}, float64(judged.wrong()), 0, measure.Plain("writes"))
		judged.explain()
	}
	return nil
}

// succeed ends one leader after the other.
func (f *fleet) succeed(ctx context.Context, by ending) (took, floor []time.Duration, err error) {
	for range f.arena.options.rounds {
		one, base, err := f.round(ctx, by)
		if err != nil {
			return nil, nil, err
		}
		took, floor = append(took, one), append(floor, base)
	}
	return took, floor, nil
}

// round ends the leader at some moment between two of its renewals, and the
// bare one at the same time.
func (f *fleet) round(ctx context.Context, by ending) (took, floor time.Duration, err error) {
	bareOnes, err := f.arena.newElection(ctx, by.graceful)
	if err != nil {
		return 0, 0, err
	}
	defer bareOnes.stop()
	if err := f.whole(ctx); err != nil {
		return 0, 0, err
	}
	old, err := f.leader(ctx)
	if err != nil {
		return 0, 0, err
	}
	moment := time.Duration(rand.Int64N(int64(2 * leader.RetryPeriod)))
	if err := lab.Holds(ctx, moment, func(context.Context) error { return old.Failure() }); err != nil {
		return 0, 0, err
	}
	var both sync.WaitGroup
	var floorErr error
	both.Go(func() { floor, floorErr = bareOnes.decide(ctx) })
	took, err = f.handOver(ctx, old, by)
	both.Wait()
	f.drop(old)
	if err = errors.Join(err, floorErr); err == nil {
		measure.Progress("%s: the next wrote after %s, a bare elector after %s", by.what, took, floor)
	}
	return took, floor, err
}

// handOver ends old while clones are edited all the time, and waits until
// another has repaired one.
func (f *fleet) handOver(ctx context.Context, old *lab.Replica, by ending) (time.Duration, error) {
	clones, err := f.arena.secrets(ctx, shared)
	if err != nil {
		return 0, err
	}
	defer clones.Stop()
	mark, began := f.arena.Cluster.Mark(), time.Now()
	var at time.Time
	var ended sync.WaitGroup
	defer ended.Wait()
	ended.Go(func() { by.do(old) })
	_, err = measure.Timed(ctx, f.damages, func(ctx context.Context) (err error) {
		failed := clones.Until(ctx, func(event watch.Event) bool {
			if event.Type == watch.Modified && !measure.IsTampered(event) {
				at, err = f.firstWrite(ctx, mark, old)
			}
			return err != nil || !at.IsZero()
		})
		if err = errors.Join(failed, err); err == nil {
			err = errRepaired
		}
		return err
	})
	if errors.Is(err, errRepaired) {
		err = nil
	}
	return at.Sub(began), err
}

// errRepaired ends the damage.
var errRepaired = errors.New("a clone is repaired")

// damages edits one clone after the other until ctx ends.
func (f *fleet) damages(ctx context.Context) error {
	ticker := time.NewTicker(damageEvery)
	defer ticker.Stop()
	damage := f.arena.edits(shared)
	for i := 0; ; i++ {
		err := damage(ctx, target(i%f.arena.clones))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !apierrors.IsConflict(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// firstWrite is when the first write of a clone arrived, from mark on, that came
// from another replica than old; zero when there is none.
func (f *fleet) firstWrite(ctx context.Context, mark cluster.Mark, old *lab.Replica) (time.Time, error) {
	var first time.Time
	_, err := f.arena.Cluster.Since(ctx, mark, func(r cluster.Request) bool {
		written := r.User == lab.ServiceAccount && r.Resource == "secrets" && r.Name == shared && r.IsWrite() && r.Code < 300
		if written && f.sent(r) && r.Source != old.Address && (first.IsZero() || r.Time.Before(first)) {
			first = r.Time
		}
		return false
	})
	return first, err
}

// sent says whether a replica of the fleet did: the bench writes in the same
// name.
func (f *fleet) sent(r cluster.Request) bool {
	for _, one := range f.replicas {
		if one.Address == r.Source {
			return true
		}
	}
	return false
}
