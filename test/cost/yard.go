package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	sourceNamespace = "cost-src"
	otherNamespace  = "cost-other"
	targets         = "cost-t-"
	label           = "cost" // of the sources that are cloned
	allowed         = "cost-editor"
	// writers is how many writes of our own are in flight.
	writers = 16
	// patience bounds one wait.
	patience = 10 * time.Minute
	// still is for how long nothing must be written before a thing is measured.
	still = time.Second
)

// yard is the cluster that is measured, and Headwater in it.
type yard struct {
	*lab.Site

	options   options
	proxy     *cluster.Proxy
	headwater *lab.Headwater
	model     *model
	// sources are the names of those that are cloned, to every target.
	sources []string
}

func newYard(ctx context.Context, c *cluster.Cluster, o options) (*yard, error) {
	site, err := lab.NewSite(ctx, c, o.binary, o.rbac)
	if err != nil {
		return nil, err
	}
	y := &yard{Site: site, options: o, model: newModel()}
	if y.proxy, err = c.Proxy(); err != nil {
		return nil, err
	}
	if err := y.proxy.KubeconfigFor(y.metered().Kubeconfig, lab.ServiceAccount); err != nil {
		return nil, err
	}
	if err := y.setRules(ctx, ""); err != nil {
		return nil, err
	}
	progress("making %d namespaces", o.namespaces)
	if err := y.Namespaces(ctx, sourceNamespace, otherNamespace); err != nil {
		return nil, err
	}
	err = parallel(ctx, o.namespaces, func(ctx context.Context, i int) error {
		return y.Namespaces(ctx, target(i))
	})
	if err != nil {
		return nil, err
	}
	// One source there always is, also while namespaces are measured.
	return y, measure.Create(ctx, y.Admin, source("seed", usualPayload))
}

// metered is Headwater by way of the proxy, which counts bytes, and with a
// garbage collector that leaves hardly anything dead on the heap. Both cost
// CPU time, so that this is not the one whose time is taken.
func (y *yard) metered() lab.Options {
	o := y.Run
	o.Kubeconfig += ".metered"
	o.Env = []string{fmt.Sprintf("GOGC=%d", closeGC)}
	return o
}

// closeGC is how many percent beyond what lives the heap may grow then.
const closeGC = 5

// setRules writes the configuration, for the next start: the one rule that
// clones, and more.
func (y *yard) setRules(ctx context.Context, more string) error {
	return y.Configure(ctx, `rules:
- name: cost
  source: {kind: Secret, namespace: `+sourceNamespace+`, selector: {matchLabels: {`+label+`: cloned}}}
  sync: {namespaces: {include: ["`+targets+`*"]}}
  reload: {debounce: 0s, minInterval: 0s, maxRestartsPerHour: 0}
`+more+`reload: {maxConcurrentRollouts: 0, maxConcurrentRolloutsPerNamespace: 0}
`)
}

// start starts Headwater in place of the one that runs, and waits until it has
// nothing left to do.
func (y *yard) start(ctx context.Context, o lab.Options) error {
	y.stop()
	var err error
	if y.headwater, err = lab.Start(o); err != nil {
		return err
	}
	if err := y.headwater.Ready(ctx); err != nil {
		return err
	}
	return y.idle(ctx)
}

func (y *yard) stop() {
	if y.headwater != nil {
		y.headwater.Stop()
	}
}

// idle waits until Headwater has worked off its queues and then writes nothing
// for a while.
func (y *yard) idle(ctx context.Context) error {
	return lab.Within(ctx, patience, lab.Rests(y.Cluster, y.headwater, still))
}

// asked are Headwater's requests since mark that filter takes, watches left out; see lab.Works.
func (y *yard) asked(ctx context.Context, mark cluster.Mark, filter func(cluster.Request) bool) ([]cluster.Request, error) {
	return y.Cluster.Since(ctx, mark, func(r cluster.Request) bool { return lab.Works(r) && r.Verb != "watch" && filter(r) })
}

func every(cluster.Request) bool { return true }

// written waits until Headwater has written n objects of resource since mark,
// and returns when the last of these requests arrived.
func (y *yard) written(ctx context.Context, mark cluster.Mark, resource string, n int) (time.Time, error) {
	var last time.Time
	err := lab.Within(ctx, patience, func(ctx context.Context) error {
		found, err := y.asked(ctx, mark, func(r cluster.Request) bool { return r.IsWrite() && r.Resource == resource && r.Code < 300 })
		for _, r := range found {
			if r.Time.After(last) {
				last = r.Time
			}
		}
		return errors.Join(err, lab.ErrorIf(len(found) < n, "%d of %d writes of %s", len(found), n, resource))
	})
	return last, errors.Join(err, y.headwater.Failure())
}

func target(i int) string { return fmt.Sprintf("%s%05d", targets, i) }

// secret is a Secret with a payload of so many bytes, another at each call.
func secret(namespace, name string, size int) *corev1.Secret {
	payload := make([]byte, size)
	_, _ = rand.Read(payload) // it never fails
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{"payload": payload},
	}
}

// source is one that the rule clones.
func source(name string, size int) *corev1.Secret {
	one := secret(sourceNamespace, name, size)
	one.Labels = map[string]string{label: "cloned"}
	return one
}

// parallel calls do for 0 … n-1, writers of them at once, until one fails.
func parallel(ctx context.Context, n int, do func(context.Context, int) error) error {
	return measure.ParallelBy(ctx, writers, n, do)
}
