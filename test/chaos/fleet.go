package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
)

const size = 3

// fleet are the replicas, each with a way of its own to the API server.
type fleet struct{ replicas [size]*replica }

// replica is one of them. A fault that breaks it locks it until it works again.
type replica struct {
	sync.Mutex

	name    string
	address string // by which requests show whose they are
	proxy   *cluster.Proxy
	options harness.Options
	*harness.Headwater
}

func newFleet(c *cluster.Cluster, binary, file string) (*fleet, error) {
	f := &fleet{}
	for i := range f.replicas {
		one := &replica{name: fmt.Sprintf("replica-%d", i+1), address: fmt.Sprintf("127.0.0.%d", 11+i)}
		f.replicas[i] = one
		var err error
		if one.proxy, err = c.ProxyFrom(one.address); err != nil {
			return nil, err
		}
		kubeconfig := filepath.Join(c.Dir(), one.name+".kubeconfig")
		if err := one.proxy.KubeconfigFor(kubeconfig, harness.ServiceAccount); err != nil {
			return nil, err
		}
		webhook, err := harness.FreeAddress()
		if err != nil {
			return nil, err
		}
		one.options = harness.Options{
			Binary: binary, Config: file, Kubeconfig: kubeconfig, Webhook: webhook, Dir: c.Dir(), Name: one.name, LogLevel: "info",
		}
		if err := one.start(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (r *replica) start() (err error) {
	r.Headwater, err = harness.Start(r.options)
	return err
}

// alive starts what has ended meanwhile, as a kubelet does: a leader that lost
// its lease ends itself.
func (r *replica) alive() error {
	select {
	case <-r.Done():
		return r.start()
	default:
		return nil
	}
}

// whole has every replica run, with an open way to the API server.
func (f *fleet) whole() error {
	var failures []error
	for _, one := range f.replicas {
		failures = append(failures, one.proxy.Restore(), one.alive())
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
		if one != nil && one.Headwater != nil {
			one.Stop()
		}
		if one != nil && one.proxy != nil {
			one.proxy.Close()
		}
	}
}
