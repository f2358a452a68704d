package kube

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// DigestKeySecret holds the key of all digests, in Headwater's own namespace.
// A start without it makes Headwater adopt every workload's baseline anew.
const DigestKeySecret = "headwater-digest-key"

const digestKeyField = "key"

// DigestKey gives out the Hasher once the key was loaded.
type DigestKey struct {
	client    kubernetes.Interface
	namespace string
	inUse     atomic.Pointer[keyInUse]
}

type keyInUse struct {
	key       []byte
	hasher    *digest.Hasher
	installed time.Time
}

// NewDigestKey returns a key that lives in namespace and is not loaded yet.
func NewDigestKey(client kubernetes.Interface, namespace string) *DigestKey {
	return &DigestKey{client: client, namespace: namespace}
}

// NewPassingDigestKey returns a key of its own, for digests that are compared
// with one another and stored nowhere.
func NewPassingDigestKey() (*DigestKey, error) {
	k := &DigestKey{}
	if err := k.use(newKey(), time.Time{}); err != nil {
		return nil, fmt.Errorf("passing digest key: %w", err)
	}
	return k, nil
}

// Hasher returns the hasher, or an error before Load succeeded.
func (k *DigestKey) Hasher() (*digest.Hasher, error) {
	if inUse := k.inUse.Load(); inUse != nil {
		return inUse.hasher, nil
	}
	return nil, errors.New("the digest key is not loaded yet")
}

// InstalledAt is when the key was created, and so when Headwater was installed, by
// the API server's clock in whole seconds. It is zero before Load succeeded, and
// for a passing key. A Secret that Headwater put back keeps the time of the first.
// Once every replica is down, deleting the Secret is a new installation: baselines
// that were made with the old key are lost, too.
func (k *DigestKey) InstalledAt() time.Time {
	if inUse := k.inUse.Load(); inUse != nil {
		return inUse.installed
	}
	return time.Time{}
}

// Read reads the key as Load does, and makes none. A caller who may not read it,
// or finds none, gets an error of the API server.
func (k *DigestKey) Read(ctx context.Context) error {
	secret, err := k.client.CoreV1().Secrets(k.namespace).Get(ctx, DigestKeySecret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("digest key: %w", err)
	}
	return k.take(secret)
}

// Load reads the key, making it first when there is none. Replicas that start
// together agree on one: the first to create the Secret wins.
func (k *DigestKey) Load(ctx context.Context) error {
	secrets := k.client.CoreV1().Secrets(k.namespace)
	secret, err := secrets.Get(ctx, DigestKeySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = secrets.Create(ctx, k.secret(newKey(), time.Time{}), metav1.CreateOptions{FieldManager: mark.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			secret, err = secrets.Get(ctx, DigestKeySecret, metav1.GetOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("digest key: %w", unquoted(err))
	}
	return k.take(secret)
}

func (k *DigestKey) take(secret *corev1.Secret) error {
	if err := k.use(secret.Data[digestKeyField], installedAt(secret)); err != nil {
		return fmt.Errorf("digest key in Secret %s/%s: %w; delete it, and a new one is made", k.namespace, DigestKeySecret, err)
	}
	return nil
}

// installedAt is the time that the Secret bears, unless it is later than the
// Secret itself.
func installedAt(secret *corev1.Secret) time.Time {
	created := secret.CreationTimestamp.Time
	if kept := mark.ParseTime(secret.Annotations[mark.InstalledAt]); !kept.IsZero() && kept.Before(created) {
		return kept
	}
	return created
}

func (k *DigestKey) use(key []byte, installed time.Time) error {
	hasher, err := digest.New(key)
	if err != nil {
		return err
	}
	k.inUse.Store(&keyInUse{key, hasher, installed})
	return nil
}

func (k *DigestKey) secret(key []byte, installed time.Time) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: DigestKeySecret},
		Data:       map[string][]byte{digestKeyField: key},
	}
	if !installed.IsZero() {
		secret.Annotations = map[string]string{mark.InstalledAt: mark.FormatTime(installed)}
	}
	return secret
}

func newKey() []byte {
	key := make([]byte, digest.KeySize)
	_, _ = rand.Read(key) // never fails, see crypto/rand
	return key
}
