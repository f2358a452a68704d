package survey

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// RemovalsName is the ConfigMap in Headwater's own namespace in which the leader
// records, for each rule name, the removals of the last minute and whether further
// removals are held. Only the leader writes it.
const RemovalsName = "headwater-removals"

// StoredRemovals is the cached content of that ConfigMap.
type StoredRemovals struct {
	metav1.ObjectMeta
	byRule map[string]plan.RemovalLog
}

// removals reads and writes the removals ConfigMap.
type removals struct {
	View      *informers.View[*StoredRemovals]
	client    kubernetes.Interface
	namespace string
	now       func() time.Time
}

func newRemovals(clients *kube.Clients, caches *informers.Caches, ownNamespace string, log *zap.Logger) (*removals, error) {
	informer := coreinformers.NewFilteredConfigMapInformer(clients.Typed, ownNamespace, 0, cache.Indexers{}, informers.Named(RemovalsName))
	view, err := informers.NewView("removals", informer, log, keepRemovals)
	if err != nil {
		return nil, err
	}
	caches.Add(view, informers.Always)
	return &removals{View: view, client: clients.Typed, namespace: ownNamespace, now: time.Now}, nil
}

// keepRemovals ignores entries that are not valid: only a manual edit causes them.
func keepRemovals(obj any) (*StoredRemovals, error) {
	configMap, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("object of type %T is not a ConfigMap", obj)
	}
	kept := &StoredRemovals{ObjectMeta: configMap.ObjectMeta, byRule: decodeRemovals(configMap.Data)}
	kept.ManagedFields = nil
	return kept, nil
}

func decodeRemovals(data map[string]string) map[string]plan.RemovalLog {
	byRule := map[string]plan.RemovalLog{}
	for rule, text := range data {
		var log plan.RemovalLog
		if log.UnmarshalText([]byte(text)) == nil {
			byRule[rule] = log
		}
	}
	return byRule
}

// Of returns the cached record of rule.
func (r *removals) Of(rule string) plan.RemovalLog {
	recorded, found := r.View.Get(r.namespace, RemovalsName)
	if !found {
		return plan.RemovalLog{}
	}
	return recorded.byRule[rule]
}

// Read reads the record from the API server, because the cache may be outdated
// after a change of leader.
func (r *removals) Read(ctx context.Context) (map[string]plan.RemovalLog, error) {
	found, err := r.client.CoreV1().ConfigMaps(r.namespace).Get(ctx, RemovalsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", r.namespace, RemovalsName, err)
	}
	return decodeRemovals(found.Data), nil
}

// Write stores byRule as the whole record.
func (r *removals) Write(ctx context.Context, byRule map[string]plan.RemovalLog) error {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: RemovalsName, Namespace: r.namespace}, Data: map[string]string{}}
	for rule, log := range byRule {
		text, err := log.MarshalText()
		if err != nil {
			return fmt.Errorf("record removals: %w", err)
		}
		configMap.Data[rule] = string(text)
	}
	configMaps := r.client.CoreV1().ConfigMaps(r.namespace)
	_, err := configMaps.Update(ctx, configMap, metav1.UpdateOptions{FieldManager: mark.FieldManager})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, configMap, metav1.CreateOptions{FieldManager: mark.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("record removals in ConfigMap %s/%s: %w", r.namespace, RemovalsName, err)
	}
	return nil
}
