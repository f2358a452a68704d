package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/process"
)

const (
	// manyWorkloads and manySecrets are those of a large cluster, which the
	// budget is for. There may be more Secrets already.
	manyWorkloads = 5000
	manySecrets   = 20_000
)

// workloads measure what is resident after a start among many Secrets, without
// workloads and with many, all of which consume a clone.
func (a *arena) workloads(ctx context.Context) error {
	list, err := a.Admin.CoreV1().Secrets("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	more := max(0, manySecrets-len(list.Items))
	secrets := len(list.Items) + more
	measure.Progress("making %d more Secrets", more)
	err = measure.Parallel(ctx, more, func(ctx context.Context, i int) error {
		return measure.Create(ctx, a.Admin, measure.Secret(unrelatedNamespace, "more-"+strconv.Itoa(i), "0"))
	})
	if err != nil {
		return err
	}
	if err := a.residentAfterStart(ctx, secrets, 0); err != nil {
		return err
	}
	if err := a.addWorkloads(ctx); err != nil {
		return err
	}
	return a.residentAfterStart(ctx, secrets, manyWorkloads)
}

// addWorkloads makes workloads, and waits until Headwater has all on record.
func (a *arena) addWorkloads(ctx context.Context) error {
	measure.Progress("making %d workloads", manyWorkloads)
	deployments, err := measure.Open(ctx, a.Admin.AppsV1().RESTClient(), "deployments", metav1.NamespaceAll, "")
	if err != nil {
		return err
	}
	defer deployments.Stop()
	adopted := map[types.UID]bool{}
	_, err = measure.Timed(ctx, func(ctx context.Context) error {
		return measure.Parallel(ctx, manyWorkloads, func(ctx context.Context, i int) error {
			namespace := target(i % a.clones)
			_, err := a.Admin.AppsV1().Deployments(namespace).Create(ctx,
				lab.Deployment(namespace, "many-"+strconv.Itoa(i), 0, lab.ByEnv(shared, "version")), metav1.CreateOptions{})
			return err
		})
	}, func(ctx context.Context) error {
		return deployments.Until(ctx, func(event watch.Event) bool {
			if deployment, ok := event.Object.(*appsv1.Deployment); ok && deployment.Annotations[mark.Baseline] != "" {
				adopted[deployment.UID] = true
			}
			return len(adopted) == manyWorkloads
		})
	})
	return err
}

// residentAfterStart restarts Headwater, so that memory of earlier measurements
// does not count.
func (a *arena) residentAfterStart(ctx context.Context, secrets, workloads int) error {
	if _, _, err := a.restart(ctx); err != nil {
		return err
	}
	mib, err := a.resident(process.Resident)
	if err != nil {
		return err
	}
	name := measure.Name{
		Key:  fmt.Sprintf("memory/started/secrets=%d/workloads=%d", secrets, workloads),
		What: fmt.Sprintf("resident memory, at %d Secrets and %d workloads", secrets, workloads),
	}
	if secrets == manySecrets {
		a.results.Count(name, mib, memoryBudget, measure.MiB)
	} else {
		a.results.Number(name, mib, measure.MiB)
	}
	return nil
}

// idleTime is how long nothing is done.
const idleTime = time.Minute

// idle counts what Headwater asks of the API server while nothing happens.
func (a *arena) idle(ctx context.Context) error {
	return a.idleRequests(ctx, measure.Name{Key: "idle/requests", What: fmt.Sprintf("requests in %s without a change", idleTime)})
}

func (a *arena) idleRequests(ctx context.Context, name measure.Name) error {
	measure.Progress("doing nothing for %s", idleTime)
	if err := a.headwater.Idle(ctx); err != nil {
		return err
	}
	mark := a.Cluster.Mark()
	if err := lab.Holds(ctx, idleTime, func(context.Context) error { return a.headwater.Failure() }); err != nil {
		return err
	}
	asked, err := a.since(ctx, mark)
	if err != nil {
		return err
	}
	a.results.Count(name, float64(asked.writes+asked.reads), 0, measure.Plain("requests"))
	return nil
}
