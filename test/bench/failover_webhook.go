package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
)

// failoversOfWebhooks ends replicas while the webhook protects alone. Nobody
// can promise that of a killed one no write fails: the API server does not ask
// another one. What must not happen is that it passes.
func (a *arena) failoversOfWebhooks(ctx context.Context, may, mayNot kubernetes.Interface) (err error) {
	config := filepath.Join(a.Run.Dir, "bench-webhook.yaml")
	if err := lab.WriteConfig(config, a.config()+"protect: {engine: Webhook}\n"); err != nil {
		return err
	}
	f, err := a.newFleet(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.end(ctx)) }()
	if err := f.protects(ctx, admissionregistrationv1.Fail); err != nil {
		return err
	}
	for _, by := range endings() {
		var all tally
		for range a.options.rounds {
			writes := a.newTraffic(ctx, may, mayNot)
			err := f.replace(ctx, by)
			judged := writes.stop()
			if err != nil {
				return err
			}
			judged.explain()
			all.add(judged)
		}
		a.webhookRows(by, all)
	}
	return nil
}

func (a *arena) webhookRows(by ending, judged tally) {
	key, what := "failover/webhook-alone/"+by.key, fmt.Sprintf("replica %s, of %d writes judged by the webhook alone", by.key, judged.all)
	a.results.Count(measure.Name{Key: key + "/passed", What: what + ": wrongly passed"}, float64(judged.passed), 0, measure.Plain("writes"))
	name, failed := measure.Name{Key: key + "/failed", What: what + ": failed"}, float64(judged.failed)
	if by.graceful {
		a.results.Count(name, failed, 0, measure.Plain("writes"))
		return
	}
	a.results.Number(name, failed, measure.Plain("writes"))
	a.results.Number(measure.Name{Key: key + "/failed-for", What: "  from the first to the last that failed, at most"},
		judged.longest.Seconds()*1000, measure.MS)
}

// replace ends one that does not lead, and starts another.
func (f *fleet) replace(ctx context.Context, by ending) error {
	leader, err := f.leader(ctx)
	if err != nil {
		return err
	}
	// The API server has connections to both by then, and writes are on their way.
	if err := lab.Holds(ctx, time.Second, func(context.Context) error { return leader.Failure() }); err != nil {
		return err
	}
	for _, one := range f.replicas {
		if one != leader {
			by.do(one)
			f.drop(one)
			break
		}
	}
	return f.whole(ctx)
}
