package informers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/admission"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// KeepDigestKey returns work for the leader that recreates the Secret of the digest
// key if it is deleted while owner is there, so that the next start finds the key in use.
// Every replica has loaded the same key.
func KeepDigestKey(k *digestkey.Key, owner *kube.Owner, clk clock.Clock, log *zap.Logger) leader.Runnable {
	log = log.Named("digest-key")
	return leader.Runnable{Name: "digest key", Run: func(ctx context.Context) error { return keepKey(ctx, k, owner, clk, log) }}
}

// storedKey is the cached part of the Secret, without the key.
type storedKey struct {
	minimalMeta
	id string // digest.Hasher.ID of the key; empty if the key is not valid
}

func keepStoredKey(obj any) (*storedKey, error) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return nil, fmt.Errorf("object of type %T is not a Secret", obj)
	}
	kept := &storedKey{minimalMeta: minimalMetaOf(secret)}
	if hasher, err := digest.New(secret.Data[digestkey.SecretField]); err == nil {
		kept.id = hasher.ID()
	}
	return kept, nil
}

func keepKey(ctx context.Context, k *digestkey.Key, owner *kube.Owner, clk clock.Clock, log *zap.Logger) error {
	informer := coreinformers.NewFilteredSecretInformer(k.Client, k.Namespace, 0, cache.Indexers{}, Named(digestkey.SecretName))
	view, err := NewView("digest key", informer, log, keepStoredKey)
	if err != nil {
		return err
	}
	woken := loop.NewWake()
	if _, err := view.OnChange(func(Change[*storedKey]) { woken.Notify() }); err != nil {
		return err
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { view.Run(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), view.HasSynced) {
		return nil
	}
	loop.Loop{Wake: woken, Clock: clk, Log: log, Step: func(ctx context.Context) (time.Duration, error) {
		stored, _ := view.Get(k.Namespace, digestkey.SecretName)
		return 0, putKeyBack(ctx, k, owner, stored, log)
	}}.Run(ctx)
	return nil
}

// putKeyBack creates the Secret if stored is nil, which means that it does not
// exist. It never overwrites another key: a newer replica may use that one.
func putKeyBack(ctx context.Context, k *digestkey.Key, owner *kube.Owner, stored *storedKey, log *zap.Logger) error {
	inUse, secret := k.InUse.Load(), zap.String("secret", k.Namespace+"/"+digestkey.SecretName)
	if stored != nil {
		if stored.id != inUse.Hasher.ID() {
			log.Warn("the stored digest key differs from the key in use: the next start adopts new baselines for all workloads, or fails; "+
				"delete the Secret, and Headwater restores the key in use", secret)
		}
		return nil
	}
	if err := owner.Installed(ctx); err != nil {
		return err
	}
	_, err := k.Client.CoreV1().Secrets(k.Namespace).Create(ctx, k.Secret(inUse.Key, inUse.Installed), metav1.CreateOptions{FieldManager: mark.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil // the watch event triggers the next check
	}
	if err != nil {
		return fmt.Errorf("restore the digest key in Secret %s/%s: %w; "+
			"without it, the next start adopts new baselines for all workloads", k.Namespace, digestkey.SecretName, admission.Redact(err))
	}
	log.Warn("the Secret of the digest key was deleted; restored the key in use", secret)
	return nil
}
