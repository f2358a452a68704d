package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
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
	*lab.Site

	options options
	results *measure.Table
	// peer writes the floors. It has the permissions of Headwater, so that authorization
	// costs the same.
	peer      *kubernetes.Clientset
	headwater *lab.Headwater
	// clones is how many there are.
	clones   int
	versions int
}

func newArena(ctx context.Context, c *cluster.Cluster, o options, results *measure.Table) (*arena, error) {
	site, err := lab.NewSite(ctx, c, o.binary, o.rbac)
	if err != nil {
		return nil, err
	}
	a := &arena{Site: site, options: o, results: results}
	if a.peer, err = client(c.ConfigFor(peerAccount)); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{a.admitPeer, a.installStatus, a.permit, a.fill} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := a.Configure(ctx, a.config()); err != nil {
		return nil, err
	}
	return a, a.start(ctx)
}

const peerAccount = "system:serviceaccount:headwater-system:bench"

// admitPeer gives the peer the permissions of Headwater. The floors are not clones, so
// the API server would evaluate the policy headwater-limit for them, and not for
// Headwater's updates: that would make them slower than they are.
func (a *arena) admitPeer(ctx context.Context) error {
	if err := lab.Bind(ctx, a.Admin, "headwater", peerAccount); err != nil {
		return err
	}
	err := a.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, spec.LimitUpdatesName, metav1.DeleteOptions{})
	return lab.IgnoreGone(err)
}

// byPeer names the peer as field manager, so that the objects it patches have two
// field managers, as with Headwater: more of them cost the API server more time.
var byPeer = metav1.PatchOptions{FieldManager: "bench-peer"}

// client speaks protobuf, as Headwater does.
func client(config *rest.Config) (*kubernetes.Clientset, error) {
	config.ContentType = runtime.ContentTypeProtobuf
	return kubernetes.NewForConfig(config)
}

// permit lets both users edit Secrets.
func (a *arena) permit(ctx context.Context) error {
	const role = "bench-secrets"
	if err := lab.Grant(ctx, a.Admin, role, allowed); err != nil {
		return err
	}
	return lab.Bind(ctx, a.Admin, role, forbidden)
}

// fill makes the source and what is not Headwater's. The bare Secrets, which
// are not either, come as the cluster grows.
func (a *arena) fill(ctx context.Context) error {
	unrelated := max(0, a.options.unrelated-a.options.clones)
	measure.Progress("making %d unrelated Secrets", unrelated)
	if err := a.Namespaces(ctx, sourceNamespace, unrelatedNamespace, crowdNamespace, fewNamespace); err != nil {
		return err
	}
	for _, one := range []*corev1.Secret{
		measure.Secret(sourceNamespace, shared, "0"), measure.Secret(sourceNamespace, bare, "0"),
		measure.Secret(crowdNamespace, shared, "0"), measure.Secret(crowdNamespace, bare, "0"),
		measure.Secret(sourceNamespace, yes, "0"), measure.Secret(fewNamespace, shared, "0"),
	} {
		if err := measure.Create(ctx, a.Admin, one); err != nil {
			return err
		}
	}
	for _, name := range a.cloned()[1:] {
		if err := measure.Create(ctx, a.Admin, measure.Secret(sourceNamespace, name, "0")); err != nil {
			return err
		}
	}
	return measure.Parallel(ctx, unrelated, func(ctx context.Context, i int) error {
		one := measure.Secret(unrelatedNamespace, "unrelated-"+strconv.Itoa(i), "0")
		if i%100 == 0 {
			one.Data["payload"] = make([]byte, 100_000)
		}
		return measure.Create(ctx, a.Admin, one)
	})
}

// grow adds namespaces until there are n clones, and waits for what the control
// plane itself puts into a new namespace.
func (a *arena) grow(ctx context.Context, n int) error {
	measure.Progress("growing to %d clones", n)
	from := a.clones
	rootCAs, err := measure.Open(ctx, a.Admin.CoreV1().RESTClient(), "configmaps", metav1.NamespaceAll, "kube-root-ca.crt")
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
	return lab.Within(ctx, measure.Patience, a.headwater.Idle)
}

func (a *arena) addTarget(ctx context.Context, namespace string) error {
	if err := a.Namespaces(ctx, namespace); err != nil {
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
		return measure.Update(ctx, a.Admin, measure.Secret(namespace, shared, version))
	}
}

// start starts Headwater, and waits until it has nothing left to do.
func (a *arena) start(ctx context.Context) error {
	var err error
	if a.headwater, err = a.Start(ctx); err != nil {
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
	return lab.Eventually(ctx, func(ctx context.Context) error {
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
