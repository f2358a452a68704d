package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	// fleetSize is what the chart installs.
	fleetSize = 2
	// drain and settle are long enough for the API server to hear of other
	// endpoints or another CA on this machine.
	drain, settle = "1500ms", "1500ms"
	// webhookConfiguration is the name of Headwater's.
	webhookConfiguration = "headwater"
)

// fleet are replicas behind the Service of the webhook.
type fleet struct {
	arena    *arena
	config   string
	service  *lab.Service
	replicas []*lab.Replica
	launched int
}

// newFleet runs as many as there are to be, by that configuration file.
func (a *arena) newFleet(ctx context.Context, config string) (*fleet, error) {
	service, err := lab.NewService(ctx, a.Admin, func(err error) { measure.Progress("%v", err) })
	if err != nil {
		return nil, err
	}
	f := &fleet{arena: a, config: config, service: service}
	if err := f.whole(ctx); err != nil {
		return nil, errors.Join(err, f.end(ctx))
	}
	return f, nil
}

// whole starts those that are missing, or have ended since they lost their lease
// on a machine too busy, as a kubelet would. It waits until all are ready, one of
// them leads and has nothing left to do.
func (f *fleet) whole(ctx context.Context) error {
	for _, one := range slices.Clone(f.replicas) {
		if err := one.Failure(); err != nil {
			measure.Progress("starting another: %v", err)
			f.drop(one)
		}
	}
	for len(f.replicas) < fleetSize {
		if err := f.launch(); err != nil {
			return err
		}
	}
	if err := f.service.Ready(ctx); err != nil {
		return err
	}
	leader, err := f.leader(ctx)
	if err != nil {
		return err
	}
	return leader.Idle(ctx)
}

func (f *fleet) launch() error {
	f.launched++
	name := fmt.Sprintf("%s-%d", filepath.Base(f.config), f.launched)
	one, err := f.arena.Replica(name, fmt.Sprintf("127.0.1.%d", f.launched), func(o *lab.Options) (err error) {
		o.Config, o.Service = f.config, true
		o.Args = []string{"--webhook-drain", drain, "--webhook-ca-settle", settle, "--lease-duration", f.arena.options.lease.String()}
		o.Webhook, err = f.service.FreeAddress()
		return err
	})
	if err != nil {
		return err
	}
	f.replicas = append(f.replicas, one)
	f.service.Add(one.Headwater)
	return nil
}

// leader waits for there to be one.
func (f *fleet) leader(ctx context.Context) (leader *lab.Replica, err error) {
	err = lab.Eventually(ctx, func(ctx context.Context) error {
		for _, one := range f.replicas {
			if leads, err := one.Metric(ctx, "headwater_leader", nil); err != nil {
				return err
			} else if leads == 1 {
				leader = one
				return nil
			}
		}
		return errors.New("no replica leads")
	})
	return leader, err
}

// drop forgets a replica that has ended.
func (f *fleet) drop(one *lab.Replica) {
	f.replicas = slices.DeleteFunc(f.replicas, func(other *lab.Replica) bool { return other == one })
	f.service.Remove(one.Headwater)
	one.Proxy.Close()
}

func (f *fleet) end(ctx context.Context) error {
	for _, one := range slices.Clone(f.replicas) {
		one.Stop()
		f.drop(one)
	}
	return f.service.Close(context.WithoutCancel(ctx))
}

// protects waits until writes are judged as they will be from then on: until what
// the webhook does not answer is left to the policies, or refused where there are
// none.
func (f *fleet) protects(ctx context.Context, otherwise admissionregistrationv1.FailurePolicyType) error {
	configurations := f.arena.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	return lab.Within(ctx, protectWithin, func(ctx context.Context) error {
		live, err := configurations.Get(ctx, webhookConfiguration, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, webhook := range live.Webhooks {
			if about, _, _ := strings.Cut(webhook.Name, "."); about == string(decide.AboutConfiguration) || about == string(decide.AboutReach) {
				continue // it is about an object of Headwater's own, and fails open
			}
			if *webhook.FailurePolicy != otherwise || webhook.ClientConfig.Service == nil {
				return fmt.Errorf("webhook %s is not registered for good yet", webhook.Name)
			}
		}
		leader, err := f.leader(ctx)
		if err != nil {
			return err
		}
		proven, err := leader.Metric(ctx, "headwater_protection_proven", nil)
		if err == nil && proven != 1 {
			err = errors.New("protection is not proven yet")
		}
		return err
	})
}
