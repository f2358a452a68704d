package lab

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
)

// written records the writes to one cluster.
type written struct {
	// next is the first revision that was not read yet.
	next int64
	// latest maps a cache of Headwater to the revision of the latest write that
	// the cache receives. caches maps an object's key to the caches that hold it.
	latest map[string]int64
	caches map[string][]string
	// mark is the end of the part of the audit log that was read. dated is an upper
	// bound of the date of the latest write in it.
	mark  cluster.Mark
	dated time.Time
}

var clusters = struct {
	sync.Mutex

	written map[*cluster.Cluster]*written
}{written: map[*cluster.Cluster]*written{}}

// readWrites reads the writes to the cluster since the last call. It returns the
// revision of the latest write for each cache of Headwater. It searches all
// objects of every kind for values of Secrets, deleted objects included. Only
// Secrets may contain them.
func readWrites(ctx context.Context, c *cluster.Cluster) (latest map[string]int64, err error) {
	clusters.Lock()
	defer clusters.Unlock()
	w := writtenTo(c)
	w.next, err = c.Writes(ctx, w.next, w.read)
	return maps.Clone(w.latest), err
}

// lastDated returns an upper bound of the date that the API server gave to the
// latest write. Leases and Events do not count: they are written all the time.
func lastDated(ctx context.Context, c *cluster.Cluster) (time.Time, error) {
	clusters.Lock()
	defer clusters.Unlock()
	w := writtenTo(c)
	mark := c.Mark()
	writes, err := c.Since(ctx, w.mark, func(r cluster.Request) bool {
		return r.IsWrite() && r.Code < 300 && r.Resource != "leases" && r.Resource != "events"
	})
	if err != nil {
		return time.Time{}, err
	}
	for _, write := range writes {
		if write.Done.After(w.dated) {
			w.dated = write.Done
		}
	}
	w.mark = mark
	return w.dated, nil
}

func writtenTo(c *cluster.Cluster) *written {
	w := clusters.written[c]
	if w == nil {
		w = &written{next: 1, latest: map[string]int64{}, caches: map[string][]string{}}
		clusters.written[c] = w
	}
	return w
}

func (w *written) read(write cluster.Write) {
	path := strings.TrimPrefix(write.Key, "/registry/")
	resource, _, _ := strings.Cut(path, "/")
	var object runtime.Object
	switch resource {
	case "secrets", "configmaps", "pods":
		object, _, _ = scheme.Codecs.UniversalDeserializer().Decode(write.Value, nil, nil)
	}
	if secret, ok := object.(*corev1.Secret); ok {
		cage.Search(path, withoutValues(secret))
	} else if resource != "secrets" {
		cage.Search(path, write.Value)
	}
	var now []string
	if len(write.Value) > 0 {
		now = cachesOf(path, object)
	}
	for _, caches := range [][]string{w.caches[path], now} {
		for _, cache := range caches {
			w.latest[cache] = write.Revision
		}
	}
	w.caches[path] = now
}

// cachesOf returns the caches that hold the object at that path below /registry.
// The names are the labels of the metric headwater_cache_resource_version. Caches
// of a single object are left out.
func cachesOf(path string, object runtime.Object) []string {
	parts := strings.Split(path, "/")
	switch object := object.(type) {
	case *corev1.Pod:
		if phase := object.Status.Phase; object.Spec.NodeName == "" || phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			return nil
		}
		return []string{"pods"}
	case metav1.Object: // a Secret or a ConfigMap
		kind := "other "
		if object.GetLabels()[mark.CloneLabel] == "true" {
			kind = "clones: "
		}
		return []string{kind + parts[0], "sources: " + parts[0] + " in " + object.GetNamespace()}
	}
	switch {
	case parts[0] == "namespaces":
		return []string{"namespaces"}
	case strings.Contains(parts[0], ".") && len(parts) > 1: // the group of a custom resource
		resource := parts[1] + "." + parts[0]
		return []string{"workloads: " + resource, "targets: " + resource, "owners: " + resource}
	default:
		return []string{"workloads: " + parts[0]}
	}
}

// HeldBy returns every value that a key of a Secret ever had, by etcd's history, deleted
// Secrets included.
func (e *Env) HeldBy(namespace, name, key string) map[string]bool {
	e.Helper()
	editions, _, err := e.Cluster.History(e.Context(), 1, "secrets")
	require.NoError(e, err)
	held := map[string]bool{}
	for _, edition := range editions {
		if secret, ok := edition.Object.(*corev1.Secret); ok && edition.Namespace == namespace && edition.Name == name {
			held[string(cage.Strip(secret.Data[key]))] = true
		}
	}
	return held
}
