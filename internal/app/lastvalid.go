package app

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/admission"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

// lastValid has the leader store the configuration in force in the Secret
// config.LastValidName: the next start compares its file with it, and commands read it
// while the current one is not valid. It may hold tokens. Headwater's ClusterRole owns
// it, so that it goes with an uninstallation.
type lastValid struct {
	client    kubernetes.Interface
	owner     *kube.Owner
	namespace string
	inForce   atomic.Pointer[config.Config]
	leads     atomic.Bool
	failing   atomic.Pointer[unstored]
	wake      loop.Wake
	log       *zap.Logger
}

// unstored is why the configuration in force is not stored, and since when.
type unstored struct {
	err   error
	since time.Time
}

func newLastValid(c *kube.Clients, s Settings, loaded *config.Config, l *zap.Logger) (*lastValid, leader.Runnable) {
	kept := &lastValid{client: c.Typed, owner: c.Owner, namespace: s.Namespace, wake: loop.NewWake(), log: l.Named("config")}
	kept.inForce.Store(loaded)
	return kept, leader.Runnable{Name: "last valid configuration", Run: kept.run}
}

// putInForce says that loaded is about to be in force. The leader stores it first.
func (k *lastValid) putInForce(ctx context.Context, loaded *config.Config) {
	k.inForce.Store(loaded)
	if !k.leads.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := k.keep(ctx); err != nil {
		k.wake.Notify() // which tries again, and logs it
	}
}

func (k *lastValid) run(ctx context.Context) error {
	k.leads.Store(true)
	defer k.leads.Store(false)
	loop.Loop{Wake: k.wake, Clock: clock.RealClock{}, Log: k.log, Step: k.keep}.Run(ctx)
	return nil
}

// keep writes only what differs.
func (k *lastValid) keep(ctx context.Context) (again time.Duration, err error) {
	stored, isOurs, err := getLastValid(ctx, k.client, k.namespace)
	if apierrors.IsNotFound(err) {
		stored, err = nil, nil
	}
	if err == nil && (!isOurs || !bytes.Equal(stored.Data[config.ConfigMapKey], k.inForce.Load().Text)) {
		err = k.write(ctx, stored)
	}
	if err == nil {
		k.failing.Store(nil)
		return 0, nil
	}
	err = fmt.Errorf("write Secret %s/%s: %w", k.namespace, config.LastValidName, admission.Redact(err))
	since := time.Now()
	if before := k.failing.Load(); before != nil {
		since = before.since
	}
	k.failing.Store(&unstored{err, since})
	return 0, err
}

func (k *lastValid) write(ctx context.Context, stored *corev1.Secret) error {
	owner, err := k.owner.References(ctx)
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: k.namespace, Name: config.LastValidName, Labels: mark.ManagedLabels(), OwnerReferences: owner}
	return kube.PutSecret(ctx, k.client, stored, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{config.ConfigMapKey: k.inForce.Load().Text}})
}

// notStoredAfter is how long the configuration may not be stored until that is told.
const notStoredAfter = time.Minute

// refusal says that the configuration in force has not been stored for longer than an API
// server that restarts takes; empty if it is.
func (k *lastValid) refusal() rulestatus.Refusal {
	failing := k.failing.Load()
	if failing == nil || time.Since(failing.since) < notStoredAfter {
		return rulestatus.Refusal{}
	}
	return rulestatus.Refusal{
		Reason:  "NotStored",
		Message: "the configuration is in force, but Headwater cannot store it, so the next start cannot know which rules were removed since: " + failing.err.Error(),
	}
}

// getLastValid returns the Secret. isOurs is true if this installation's ClusterRole owns
// it: the backup of another one says nothing about this one, and the garbage collector is
// about to delete what it restores.
func getLastValid(ctx context.Context, client kubernetes.Interface, namespace string) (stored *corev1.Secret, isOurs bool, err error) {
	stored, err = client.CoreV1().Secrets(namespace).Get(ctx, config.LastValidName, metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	owner, err := kube.OwnerReferences(ctx, client)
	return stored, err == nil && equality.Semantic.DeepEqual(stored.OwnerReferences, owner), err
}

// readLastValid returns the stored configuration; nil if there is none of this
// installation, or if this version cannot read it. An earlier version stored it as a
// ConfigMap.
func readLastValid(ctx context.Context, client kubernetes.Interface, namespace string) (*config.Config, error) {
	var text []byte
	stored, isOurs, err := getLastValid(ctx, client, namespace)
	if err == nil && !isOurs {
		return nil, nil
	}
	if err == nil {
		text = stored.Data[config.ConfigMapKey]
	} else if apierrors.IsNotFound(err) {
		var earlier *corev1.ConfigMap
		if earlier, err = client.CoreV1().ConfigMaps(namespace).Get(ctx, config.LastValidName, metav1.GetOptions{}); err == nil {
			text = []byte(earlier.Data[config.ConfigMapKey])
		}
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration that was last in force, %s/%s: %w", namespace, config.LastValidName, err)
	}
	before, err := config.ParseIn(namespace, config.LastValidName, text)
	if err != nil {
		return nil, nil //nolint:nilerr // another version wrote it; an Event says that it is not known
	}
	return before, nil
}
