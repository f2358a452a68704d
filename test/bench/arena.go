package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
)

// writers is how many bare writes are in flight at once: as many as Headwater
// has workers.
const writers = 32

const (
	sourceNamespace = "bench-src"
	shared          = "shared" // Headwater's clones
	bare            = "bare"   // the same Secrets, written by the bench itself
	rules           = `apiVersion: headwater.dev/v1alpha1
kind: Config
rules:
- name: bench
  source: {kind: Secret, namespace: bench-src, name: shared}
  sync: {namespaces: {include: ["bench-t-*"]}}
  protect: {allow: {clusterRoles: [], users: [exempt]}}
  reload: {debounce: 0s}
`
)

type options struct {
	clones, unrelated, rounds int
	binary, rbac              string
}

// arena is a cluster full of namespaces, and Headwater in it.
type arena struct {
	options   options
	cluster   *cluster.Cluster
	client    kubernetes.Interface
	headwater *harness.Headwater
	run       harness.Options
	rounds    int
}

func newArena(ctx context.Context, c *cluster.Cluster, o options) (*arena, error) {
	a := &arena{options: o, cluster: c}
	var err error
	if a.client, err = client(c.Config()); err != nil {
		return nil, err
	}
	if err := harness.Apply(ctx, c.Config(), o.rbac); err != nil {
		return nil, err
	}
	config, kubeconfig := filepath.Join(c.Dir(), "bench.yaml"), filepath.Join(c.Dir(), "bench.kubeconfig")
	if err := os.WriteFile(config, []byte(rules), 0o600); err != nil {
		return nil, err
	}
	if err := c.KubeconfigFor(kubeconfig, harness.ServiceAccount); err != nil {
		return nil, err
	}
	a.run = harness.Options{Binary: o.binary, Config: config, Kubeconfig: kubeconfig, Dir: c.Dir(), LogLevel: "info"}
	return a, a.fill(ctx)
}

func client(config *rest.Config) (kubernetes.Interface, error) {
	config.ContentType = runtime.ContentTypeProtobuf
	return kubernetes.NewForConfig(config)
}

// fill makes the source, the namespaces, the bare Secrets and the unrelated.
func (a *arena) fill(ctx context.Context) error {
	if err := harness.EnsureNamespace(ctx, a.client, sourceNamespace, nil); err != nil {
		return err
	}
	if err := a.create(ctx, sourceNamespace, shared); err != nil {
		return err
	}
	err := parallel(ctx, a.options.clones, func(ctx context.Context, i int) error {
		if err := harness.EnsureNamespace(ctx, a.client, target(i), nil); err != nil {
			return err
		}
		return a.create(ctx, target(i), bare)
	})
	if err != nil {
		return err
	}
	return parallel(ctx, a.options.unrelated, func(ctx context.Context, i int) error {
		return a.create(ctx, target(i%a.options.clones), "unrelated-"+strconv.Itoa(i))
	})
}

func target(i int) string { return fmt.Sprintf("bench-t-%05d", i) }

func (a *arena) create(ctx context.Context, namespace, name string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: payload("0")}
	_, err := a.client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// payload is 1 KiB and a version to tell it by.
func payload(version string) map[string][]byte {
	return map[string][]byte{"payload": []byte(strings.Repeat(rand.Text(), 40)[:1024]), "version": []byte(version)}
}

// version names a new version of the payload.
func (a *arena) version() string {
	a.rounds++
	return strconv.Itoa(a.rounds)
}

// parallel calls do for 0 … n-1 by as many workers as Headwater has.
func parallel(ctx context.Context, n int, do func(context.Context, int) error) error {
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failure.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					failure.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	all.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// untilAll times act from its beginning until n Secrets called name have the
// given version, as a watch shows it.
func (a *arena) untilAll(ctx context.Context, n int, name, version string, act func(context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	selector := "metadata.name=" + name
	list, err := a.client.CoreV1().Secrets("").List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: 1})
	if err != nil {
		return 0, err
	}
	events, err := a.client.CoreV1().Secrets("").Watch(ctx, metav1.ListOptions{FieldSelector: selector, ResourceVersion: list.ResourceVersion})
	if err != nil {
		return 0, err
	}
	defer events.Stop()
	began := time.Now()
	failed := make(chan error, 1)
	go func() { failed <- act(ctx) }()
	return waitFor(events, failed, n, version, began)
}

func waitFor(events watch.Interface, failed chan error, n int, version string, began time.Time) (time.Duration, error) {
	seen := map[string]bool{}
	for {
		select {
		case err := <-failed:
			if err != nil {
				return 0, err
			}
			failed = nil
		case event, open := <-events.ResultChan():
			if !open {
				return 0, errors.New("the watch ended before all was seen")
			}
			secret, ok := event.Object.(*corev1.Secret)
			if ok && secret.Namespace != sourceNamespace && string(secret.Data["version"]) == version {
				seen[secret.Namespace] = true
			}
			if len(seen) == n {
				return time.Since(began), nil
			}
		}
	}
}

// editSource gives the source a new payload.
func (a *arena) editSource(version string) func(context.Context) error {
	return func(ctx context.Context) error {
		data := payload(version)
		patch := fmt.Appendf(nil, `{"stringData":{"payload":%q,"version":%q}}`, data["payload"], version)
		_, err := a.client.CoreV1().Secrets(sourceNamespace).Patch(ctx, shared, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

func (a *arena) stop() {
	if a.headwater != nil {
		a.headwater.Stop()
	}
}

func waitForStamps(ctx context.Context, events watch.Interface, before map[string]string, began time.Time) (time.Duration, error) {
	for len(before) > 0 {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case event, open := <-events.ResultChan():
			if !open {
				return 0, errors.New("the watch ended before all was seen")
			}
			deployment, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			was, waiting := before[deployment.Namespace]
			if waiting && deployment.Spec.Template.Annotations[mark.RestartedFor] != was {
				delete(before, deployment.Namespace)
			}
		}
	}
	return time.Since(began), nil
}
