package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
)

const (
	sourceNamespace    = "bench-src"
	unrelatedNamespace = "bench-unrelated"
	crowdNamespace     = "bench-crowd" // holds many consumers of one Secret that is not cloned
	fewNamespace       = "bench-few"   // holds a source that is cloned into few namespaces alone
	homes              = "bench-home-" // begins the names of those
	targets            = "bench-t-"    // begins the names of the namespaces that fan-outs are timed by
	shared             = "shared"      // the source, and Headwater's clones of it
	bare               = "bare"        // the same Secrets, written by the bench itself
	allowed            = "bench-editor"
	forbidden          = "bench-stranger" // may edit Secrets, and no rule allows it
)

// arena is a cluster full of namespaces, and Headwater in it.
type arena struct {
	options options
	results *measure.Table
	cluster *cluster.Cluster
	// admin sets up and watches.
	admin *kubernetes.Clientset
	// peer writes the floors. It is let in as Headwater is: as the same
	// service account, so that authorization and flow control cost the same.
	peer      *kubernetes.Clientset
	headwater *harness.Headwater
	run       harness.Options
	// clones is how many there are.
	clones   int
	versions int
}

func newArena(ctx context.Context, c *cluster.Cluster, o options, results *measure.Table) (*arena, error) {
	a := &arena{options: o, results: results, cluster: c}
	var err error
	if a.admin, err = client(c.Config()); err != nil {
		return nil, err
	}
	if a.peer, err = client(c.ConfigFor(harness.ServiceAccount)); err != nil {
		return nil, err
	}
	if err := harness.Apply(ctx, c.Config(), o.rbac); err != nil {
		return nil, err
	}
	if err := a.installStatus(ctx); err != nil {
		return nil, err
	}
	if err := a.configure(); err != nil {
		return nil, err
	}
	if err := a.permit(ctx); err != nil {
		return nil, err
	}
	if err := a.fill(ctx); err != nil {
		return nil, err
	}
	return a, a.start(ctx)
}

// byPeer names the peer as field manager, so that the objects it patches have two
// field managers, as with Headwater: more of them cost the API server more time.
var byPeer = metav1.PatchOptions{FieldManager: "bench-peer"}

// client speaks protobuf, as Headwater does.
func client(config *rest.Config) (*kubernetes.Clientset, error) {
	config.ContentType = runtime.ContentTypeProtobuf
	return kubernetes.NewForConfig(config)
}

func (a *arena) configure() error {
	dir := a.cluster.Dir()
	// A folder that nothing else is written to, as a mounted ConfigMap is:
	// Headwater watches it.
	own := filepath.Join(dir, "config")
	if err := os.Mkdir(own, 0o700); err != nil {
		return err
	}
	config, kubeconfig := filepath.Join(own, "bench.yaml"), filepath.Join(dir, "bench.kubeconfig")
	if err := os.WriteFile(config, []byte(a.config()), 0o600); err != nil {
		return err
	}
	if err := a.cluster.KubeconfigFor(kubeconfig, harness.ServiceAccount); err != nil {
		return err
	}
	webhook, err := harness.FreeAddress()
	if err != nil {
		return err
	}
	a.run = harness.Options{
		Binary: a.options.binary, Config: config, Kubeconfig: kubeconfig, Dir: dir, Webhook: webhook, LogLevel: "info", Env: harness.ChartEnv(),
	}
	return nil
}

// permit lets both users edit Secrets.
func (a *arena) permit(ctx context.Context) error {
	const role = "bench-secrets"
	if err := harness.Grant(ctx, a.admin, role, allowed); err != nil {
		return err
	}
	return harness.Bind(ctx, a.admin, role, forbidden)
}

// fill makes the source and what is not Headwater's. The bare Secrets, which
// are not either, come as the cluster grows.
func (a *arena) fill(ctx context.Context) error {
	unrelated := max(0, a.options.unrelated-a.options.clones)
	measure.Progress("making %d unrelated Secrets", unrelated)
	for _, namespace := range []string{sourceNamespace, unrelatedNamespace, crowdNamespace, fewNamespace} {
		if err := harness.EnsureNamespace(ctx, a.admin, namespace, nil); err != nil {
			return err
		}
	}
	for _, one := range []*corev1.Secret{
		measure.Secret(sourceNamespace, shared, "0"), measure.Secret(sourceNamespace, bare, "0"),
		measure.Secret(crowdNamespace, shared, "0"), measure.Secret(crowdNamespace, bare, "0"),
		measure.Secret(sourceNamespace, yes, "0"), measure.Secret(fewNamespace, shared, "0"),
	} {
		if err := measure.Create(ctx, a.admin, one); err != nil {
			return err
		}
	}
	for _, name := range a.cloned()[1:] {
		if err := measure.Create(ctx, a.admin, measure.Secret(sourceNamespace, name, "0")); err != nil {
			return err
		}
	}
	return measure.Parallel(ctx, unrelated, func(ctx context.Context, i int) error {
		one := measure.Secret(unrelatedNamespace, "unrelated-"+strconv.Itoa(i), "0")
		if i%100 == 0 {
			one.Data["payload"] = make([]byte, 100_000)
		}
		return measure.Create(ctx, a.admin, one)
	})
}

// grow adds namespaces until there are n clones, and waits for what the control
// plane itself puts into a new namespace.
func (a *arena) grow(ctx context.Context, n int) error {
	measure.Progress("growing to %d clones", n)
	from := a.clones
	rootCAs, err := measure.Open(ctx, a.admin.CoreV1().RESTClient(), "configmaps", metav1.NamespaceAll, "kube-root-ca.crt")
	if err != nil {
		return err
	}
	defer rootCAs.Stop()
	clones, err := a.secrets(ctx, shared)
	if err != nil {
		return err
	}
	defer clones.Stop()
	_, err = measure.Timed(ctx, func(ctx context.Context) error {
		_, err := measure.Timed(ctx, func(ctx context.Context) error {
			return measure.Parallel(ctx, n-from, func(ctx context.Context, i int) error { return a.addTarget(ctx, target(from+i)) })
		}, clones.Each(n-from, measure.Added))
		return err
	}, rootCAs.Each(n-from, measure.Added))
	if err != nil {
		return err
	}
	a.clones = n
	return harness.Within(ctx, measure.Patience, a.headwater.Idle)
}

func (a *arena) addTarget(ctx context.Context, namespace string) error {
	if err := harness.EnsureNamespace(ctx, a.admin, namespace, nil); err != nil {
		return err
	}
	return measure.Create(ctx, a.peer, bareClone(namespace, "0"))
}

func target(i int) string { return fmt.Sprintf("%s%05d", targets, i) }

// version names a payload that was not there before.
func (a *arena) version() string {
	a.versions++
	return strconv.Itoa(a.versions)
}

// editSource gives the source of that namespace the payload of version.
func (a *arena) editSource(namespace, version string) func(context.Context) error {
	return func(ctx context.Context) error {
		return measure.Update(ctx, a.admin, measure.Secret(namespace, shared, version))
	}
}

// start starts Headwater, and waits until it has nothing left to do.
func (a *arena) start(ctx context.Context) error {
	var err error
	if a.headwater, err = harness.Start(a.run); err != nil {
		return err
	}
	if err := a.headwater.Ready(ctx); err != nil {
		return err
	}
	if a.options.protected {
		// What it then writes down belongs to its start.
		if err := a.awaitProof(ctx); err != nil {
			return err
		}
	}
	return a.headwater.Idle(ctx)
}

func (a *arena) awaitProof(ctx context.Context) error {
	return harness.Eventually(ctx, func(ctx context.Context) error {
		proven, err := a.headwater.Metric(ctx, "headwater_protection_proven", nil)
		if err == nil && proven != 1 {
			err = errors.New("protection is not proven yet")
		}
		return err
	})
}

func (a *arena) stop() {
	if a.headwater != nil {
		a.headwater.Stop()
	}
}
