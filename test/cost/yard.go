package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
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
	// lookEvery is how often the audit log is read; that costs what is measured nothing.
	lookEvery = 100 * time.Millisecond
	// still is for how long nothing must be written before a thing is measured.
	still = time.Second
)

// yard is the cluster that is measured, and Headwater in it.
type yard struct {
	options   options
	cluster   *cluster.Cluster
	admin     *kubernetes.Clientset
	proxy     *cluster.Proxy
	headwater *harness.Headwater
	direct    harness.Options // how Headwater runs
	model     *model
	// sources are the names of those that are cloned, to every target.
	sources []string
}

func newYard(ctx context.Context, c *cluster.Cluster, o options) (*yard, error) {
	y := &yard{options: o, cluster: c, model: newModel()}
	config := c.Config()
	config.ContentType = runtime.ContentTypeProtobuf
	var err error
	if y.admin, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if err := harness.Apply(ctx, c.Config(), o.rbac); err != nil {
		return nil, err
	}
	if y.proxy, err = c.Proxy(); err != nil {
		return nil, err
	}
	if err := y.configure(); err != nil {
		return nil, err
	}
	progress("making %d namespaces", o.namespaces)
	for _, namespace := range []string{sourceNamespace, otherNamespace} {
		if err := harness.EnsureNamespace(ctx, y.admin, namespace, nil); err != nil {
			return nil, err
		}
	}
	err = parallel(ctx, o.namespaces, func(ctx context.Context, i int) error {
		return harness.EnsureNamespace(ctx, y.admin, target(i), nil)
	})
	if err != nil {
		return nil, err
	}
	// One source there always is, also while namespaces are measured.
	return y, measure.Create(ctx, y.admin, source("seed", usualPayload))
}

func (y *yard) configure() error {
	dir := y.cluster.Dir()
	y.direct = harness.Options{
		Binary: y.options.binary, Config: filepath.Join(dir, "cost.yaml"), Kubeconfig: filepath.Join(dir, "cost.kubeconfig"), Dir: dir, LogLevel: "info", Env: harness.ChartEnv(),
	}
	if err := y.cluster.KubeconfigFor(y.direct.Kubeconfig, harness.ServiceAccount); err != nil {
		return err
	}
	if err := y.proxy.KubeconfigFor(y.metered().Kubeconfig, harness.ServiceAccount); err != nil {
		return err
	}
	var err error
	if y.direct.Webhook, err = harness.FreeAddress(); err != nil {
		return err
	}
	return y.setRules("")
}

// metered is Headwater by way of the proxy, which counts bytes, and with a
// garbage collector that leaves hardly anything dead on the heap. Both cost
// CPU time, so that this is not the one whose time is taken.
func (y *yard) metered() harness.Options {
	o := y.direct
	o.Kubeconfig += ".metered"
	o.Env = []string{fmt.Sprintf("GOGC=%d", closeGC)}
	return o
}

// closeGC is how many percent beyond what lives the heap may grow then.
const closeGC = 5

// setRules writes the configuration, for the next start: the one rule that
// clones, and more.
func (y *yard) setRules(more string) error {
	rules := `apiVersion: headwater.dev/v1alpha1
kind: Config
rules:
- name: cost
  source: {kind: Secret, namespace: ` + sourceNamespace + `, selector: {matchLabels: {` + label + `: cloned}}}
  sync: {namespaces: {include: ["` + targets + `*"]}}
  reload: {debounce: 0s, minInterval: 0s, maxRestartsPerHour: 0}
` + more + `reload: {maxConcurrentRollouts: 0, maxConcurrentRolloutsPerNamespace: 0}
`
	return os.WriteFile(y.direct.Config, []byte(rules), 0o600)
}

// start starts Headwater in place of the one that runs, and waits until it has
// nothing left to do.
func (y *yard) start(ctx context.Context, o harness.Options) error {
	y.stop()
	var err error
	if y.headwater, err = harness.Start(o); err != nil {
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
	return harness.Within(ctx, patience, func(ctx context.Context) error {
		if err := y.headwater.Failure(); err != nil {
			return harness.Permanent(err)
		}
		if err := y.headwater.Idle(ctx); err != nil {
			return err
		}
		mark := y.cluster.Mark()
		timer := time.NewTimer(still)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		asked, err := y.asked(ctx, mark, cluster.Request.IsWrite)
		if err == nil && len(asked) > 0 {
			err = fmt.Errorf("%d writes within %s", len(asked), still)
		}
		return err
	})
}

// asked are Headwater's requests since mark that filter takes; its lease, its
// Events, watches, and reviews, which store nothing, left out.
func (y *yard) asked(ctx context.Context, mark cluster.Mark, filter func(cluster.Request) bool) ([]cluster.Request, error) {
	return y.cluster.Since(ctx, mark, func(r cluster.Request) bool {
		return r.User == harness.ServiceAccount && r.Resource != "" && r.Resource != "leases" && r.Resource != "events" &&
			!strings.HasSuffix(r.Resource, "reviews") && r.Verb != "watch" && filter(r)
	})
}

func every(cluster.Request) bool { return true }

// written waits until Headwater has written n objects of resource since mark,
// and returns when the last of these requests arrived.
func (y *yard) written(ctx context.Context, mark cluster.Mark, resource string, n int) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("wait for %d writes of %s: not so after %s", n, resource, patience))
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		found, err := y.asked(ctx, mark, func(r cluster.Request) bool { return r.IsWrite() && r.Resource == resource && r.Code < 300 })
		if err != nil {
			return time.Time{}, errors.Join(err, context.Cause(ctx))
		}
		if len(found) >= n {
			last := found[0].Time
			for _, r := range found {
				if r.Time.After(last) {
					last = r.Time
				}
			}
			return last, y.headwater.Failure()
		}
		select {
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		case <-ticker.C:
		}
	}
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
