package app

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// lastValid copies the configuration in force to the ConfigMap
// config.LastValidName, which commands read while the current configuration is
// not valid. It copies only what ConfigMap config.ConfigMapName holds: a
// configuration from elsewhere, such as a Secret, may hold tokens and stays there.
type lastValid struct {
	client    kubernetes.Interface
	namespace string
	// revision is that of the configuration in force.
	revision atomic.Pointer[string]
	wake     loop.Wake
	log      *zap.Logger
}

type keptConfig struct {
	fx.Out

	Kept   *lastValid
	Leader leader.Runnable `group:"leader"`
}

func newLastValid(c *kube.Clients, s Settings, loaded *config.Config, l *zap.Logger) keptConfig {
	kept := &lastValid{client: c.Typed, namespace: s.Namespace, wake: loop.NewWake(), log: l.Named("config")}
	kept.inForce(loaded)
	return keptConfig{Kept: kept, Leader: leader.Runnable{Name: "last valid configuration", Run: kept.run}}
}

// inForce says that loaded is in force from now on. It never blocks.
func (k *lastValid) inForce(loaded *config.Config) {
	k.revision.Store(&loaded.Revision)
	k.wake.Notify()
}

func (k *lastValid) run(ctx context.Context) error {
	loop.Loop{Wake: k.wake, Clock: clock.RealClock{}, Log: k.log, Step: k.keep}.Run(ctx)
	return nil
}

// keep writes only what differs from the copy.
func (k *lastValid) keep(ctx context.Context) (again time.Duration, err error) {
	api := k.client.CoreV1().ConfigMaps(k.namespace)
	current, err := api.Get(ctx, config.ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("get ConfigMap %s/%s: %w", k.namespace, config.ConfigMapName, err)
	}
	text := current.Data[config.ConfigMapKey]
	if config.RevisionOf([]byte(text)) != *k.revision.Load() {
		return 0, nil
	}
	if err := k.write(ctx, text); err != nil {
		return 0, fmt.Errorf("write ConfigMap %s/%s: %w", k.namespace, config.LastValidName, err)
	}
	return 0, nil
}

func (k *lastValid) write(ctx context.Context, text string) error {
	api := k.client.CoreV1().ConfigMaps(k.namespace)
	stored, err := api.Get(ctx, config.LastValidName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = api.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: k.namespace, Name: config.LastValidName,
				Labels: map[string]string{"app.kubernetes.io/managed-by": "headwater"},
			},
			Data: map[string]string{config.ConfigMapKey: text},
		}, metav1.CreateOptions{FieldManager: mark.FieldManager})
	case err == nil && stored.Data[config.ConfigMapKey] != text:
		stored.Data, stored.BinaryData = map[string]string{config.ConfigMapKey: text}, nil
		_, err = api.Update(ctx, stored, metav1.UpdateOptions{FieldManager: mark.FieldManager})
	}
	return err
}
