package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// fault is one way in which things break. strikes draws what it needs, at once,
// and returns what breaks things and puts them right again.
type fault struct {
	name    string
	strikes func(*rand.Rand) func(context.Context) error
}

// faults lists what may break. Those of one replica wait for one another; so do
// those of the control plane.
func (s *storm) faults() []fault {
	return []fault{
		{"a replica is killed", s.toReplica(0, 3*time.Second, func(r *replica) error { r.Kill(); return nil }, func(r *replica) error { return r.Restart() })},
		{"a replica is stopped", s.toReplica(0, 3*time.Second, func(r *replica) error { r.Stop(); return nil }, func(r *replica) error { return r.Restart() })},
		{"a replica stands still for longer than its lease", s.toReplica(17*time.Second, 22*time.Second,
			func(r *replica) error { return r.Pause() }, func(r *replica) error { return r.Resume() })},
		{"a replica's connections are dropped", s.toReplica(time.Second, 14*time.Second, (*replica).cut, (*replica).repair)},
		{"a replica's connections are held", s.toReplica(time.Second, 20*time.Second, (*replica).hold, (*replica).repair)},
		{"a replica's way is slow", s.toReplica(3*time.Second, 10*time.Second, (*replica).slow, (*replica).repair)},
		{"the API server is restarted", s.toControlPlane(s.cluster.RestartAPIServer)},
		{"the API server is killed", s.toControlPlane(func(ctx context.Context) error {
			return errors.Join(s.cluster.KillAPIServer(), s.cluster.StartAPIServer(ctx))
		})},
		{"etcd is killed", s.toControlPlane(s.cluster.RestartEtcd)},
	}
}

func (r *replica) cut() error { r.Proxy.Cut(); return nil }

func (r *replica) hold() error { r.Proxy.Hold(); return nil }

func (r *replica) slow() error { r.Proxy.Slow(200 * time.Millisecond); return nil }

// repair also drops what was held: those connections stay dead.
func (r *replica) repair() error {
	r.Proxy.Cut()
	return r.Proxy.Restore()
}

// toReplica breaks one for a time from least to most.
func (s *storm) toReplica(least, most time.Duration, breaks, repairs func(*replica) error) func(*rand.Rand) func(context.Context) error {
	return func(random *rand.Rand) func(context.Context) error {
		victim := s.fleet.replicas[random.IntN(size)]
		lasting := least + time.Duration(random.Int64N(int64(most-least)))
		return func(ctx context.Context) error {
			victim.Lock()
			defer victim.Unlock()
			if err := errors.Join(victim.alive(), breaks(victim)); err != nil {
				return err
			}
			waited := pauseFor(ctx, lasting)
			return errors.Join(waited, repairs(victim))
		}
	}
}

func (s *storm) toControlPlane(do func(context.Context) error) func(*rand.Rand) func(context.Context) error {
	return func(*rand.Rand) func(context.Context) error {
		return func(ctx context.Context) error {
			s.controlPlane.Lock()
			defer s.controlPlane.Unlock()
			return do(ctx)
		}
	}
}
