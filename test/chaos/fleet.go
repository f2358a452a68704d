package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/headwater-k8s/headwater/test/lab"
)

const size = 3

// fleet are the replicas, each with a way of its own to the API server.
type fleet struct{ replicas [size]*replica }

// replica is one of them. A fault that breaks it locks it until it works again.
type replica struct {
	sync.Mutex
	*lab.Replica
}

func newFleet(site *lab.Site) (*fleet, error) {
	f := &fleet{}
	for i := range f.replicas {
		one, err := site.Replica(fmt.Sprintf("replica-%d", i+1), fmt.Sprintf("127.0.0.%d", 11+i), func(o *lab.Options) (err error) {
			o.Webhook, err = lab.FreeAddress()
			return err
		})
		if err != nil {
			return nil, err
		}
		f.replicas[i] = &replica{Replica: one}
	}
	return f, nil
}

// alive starts what has ended meanwhile, as a kubelet does: a leader that lost
// its lease ends itself.
func (r *replica) alive() error {
	select {
	case <-r.Done():
		return r.Restart()
	default:
		return nil
	}
}

// whole has every replica run, with an open way to the API server.
func (f *fleet) whole() error {
	var failures []error
	for _, one := range f.replicas {
		failures = append(failures, one.Proxy.Restore(), one.alive())
	}
	return errors.Join(failures...)
}

// ready reports what is missing for every replica to be ready.
func (f *fleet) ready(ctx context.Context) error {
	for _, one := range f.replicas {
		if err := one.alive(); err != nil {
			return err
		}
		if err := one.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) end() {
	for _, one := range f.replicas {
		one.End()
	}
}
