package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/process"
)

// sectioned has a section of reload.namespaces for all of the bench's namespaces.
func (a *arena) sectioned() string {
	return strings.Replace(a.config(), "\nreload: {", `
reload: {namespaces: [{include: ["`+targets+`*"]}], `, 1)
}

// sections measure what a section of reload.namespaces costs: the same workloads,
// each with a Secret of its own that no rule governs, without the section and with
// it. Each such Secret is read once at a start.
func (a *arena) sections(ctx context.Context) error {
	if err := a.addOwners(ctx); err != nil {
		return err
	}
	without, err := a.startedBy(ctx, a.config())
	if err != nil {
		return err
	}
	if _, err := a.startedBy(ctx, a.sectioned()); err != nil { // which adopts
		return err
	}
	with, err := a.startedBy(ctx, a.sectioned())
	if err != nil {
		return err
	}
	n := a.options.consumers
	key := func(what string) string { return fmt.Sprintf("sections/%s/workloads=%d", what, n) }
	a.results.Beside(measure.Name{Key: key("resident"), What: fmt.Sprintf("resident memory with reload.namespaces, at %d workloads with a Secret each", n)},
		with.mib, without.mib, measure.MiB)
	a.results.Compared(measure.Name{Key: key("start"), What: "start to ready with reload.namespaces"},
		[]time.Duration{with.took}, []time.Duration{without.took})
	a.results.Beside(measure.Name{Key: key("reads"), What: "reads at a start with reload.namespaces"},
		float64(with.reads), float64(without.reads), measure.Plain("requests"))
	a.results.Count(measure.Name{Key: key("writes"), What: "writes after a restart with reload.namespaces and nothing changed"},
		float64(with.writes), 0, measure.Plain("writes"))
	err = a.idleRequests(ctx, measure.Name{Key: key("idle"), What: fmt.Sprintf("requests in %s without a change, with reload.namespaces", idleTime)})
	if err != nil {
		return err
	}
	_, err = a.startedBy(ctx, a.config())
	return err
}

// addOwners makes workloads that read a Secret of their own each.
func (a *arena) addOwners(ctx context.Context) error {
	measure.Progress("making %d workloads with a Secret each", a.options.consumers)
	return measure.Parallel(ctx, a.options.consumers, func(ctx context.Context, i int) error {
		namespace, own := target(i%a.clones), "own-"+strconv.Itoa(i)
		if err := measure.Create(ctx, a.Admin, measure.Secret(namespace, own, "0")); err != nil {
			return err
		}
		_, err := a.Admin.AppsV1().Deployments(namespace).Create(ctx,
			lab.Deployment(namespace, own, 0, lab.ByEnv(own, "version")), metav1.CreateOptions{})
		return err
	})
}

// started is what a start took.
type started struct {
	took          time.Duration
	mib           float64
	reads, writes int
}

// startedBy restarts Headwater by a configuration, and waits until it has nothing
// left to do.
func (a *arena) startedBy(ctx context.Context, config string) (s started, err error) {
	a.headwater.Stop()
	if err := a.Configure(ctx, config); err != nil {
		return s, err
	}
	before := a.Cluster.Mark()
	if s.took, s.writes, err = a.restart(ctx); err != nil {
		return s, err
	}
	asked, err := a.since(ctx, before)
	if err != nil {
		return s, err
	}
	s.reads = asked.reads
	s.mib, err = a.resident(process.Resident)
	return s, err
}
