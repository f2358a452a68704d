package digestkey

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
	"github.com/headwater-k8s/headwater/internal/kube/admission"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// DigestKeySecret holds the key of all digests, in Headwater's own namespace.
// A start without it makes Headwater adopt every workload's baseline anew.
const SecretName = "headwater-digest-key"

const SecretField = "key"

// Key gives out the Hasher once the key was loaded.
type Key struct {
	Client    kubernetes.Interface
	Namespace string
	InUse     atomic.Pointer[keyInUse]
}

type keyInUse struct {
	Key       []byte
	Hasher    *digest.Hasher
	Installed time.Time
}

// New returns a key that lives in namespace and is not loaded yet.
func New(client kubernetes.Interface, namespace string) *Key {
	return &Key{Client: client, Namespace: namespace}
}

// NewEphemeral returns a key of its own, for digests that are compared
// with one another and stored nowhere.
func NewEphemeral() (*Key, error) {
	k := &Key{}
	if err := k.use(newKey(), time.Time{}); err != nil {
		return nil, fmt.Errorf("passing digest key: %w", err)
	}
	return k, nil
}

// Hasher returns the hasher, or an error before Load succeeded.
func (k *Key) Hasher() (*digest.Hasher, error) {
	if inUse := k.InUse.Load(); inUse != nil {
		return inUse.Hasher, nil
	}
	return nil, errors.New("the digest key is not loaded yet")
}

// InstalledAt is when the key was created, and so when Headwater was installed, by
// the API server's clock in whole seconds. It is zero before Load succeeded, and
// for a passing key. A Secret that Headwater put back keeps the time of the first.
// Once every replica is down, deleting the Secret is a new installation: baselines
// that were made with the old key are lost, too.
func (k *Key) InstalledAt() time.Time {
	if inUse := k.InUse.Load(); inUse != nil {
		return inUse.Installed
	}
	return time.Time{}
}

// Read reads the key as Load does, and makes none. A caller who may not read it,
// or finds none, gets an error of the API server.
func (k *Key) Read(ctx context.Context) error {
	secret, err := k.Client.CoreV1().Secrets(k.Namespace).Get(ctx, SecretName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("digest key: %w", err)
	}
	return k.take(secret)
}

// Load reads the key, making it first when there is none. Replicas that start
// together agree on one: the first to create the Secret wins.
func (k *Key) Load(ctx context.Context) error {
	secrets := k.Client.CoreV1().Secrets(k.Namespace)
	secret, err := secrets.Get(ctx, SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = secrets.Create(ctx, k.Secret(newKey(), time.Time{}), metav1.CreateOptions{FieldManager: mark.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			secret, err = secrets.Get(ctx, SecretName, metav1.GetOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("digest key: %w", admission.Redact(err))
	}
	return k.take(secret)
}

func (k *Key) take(secret *corev1.Secret) error {
	if err := k.use(secret.Data[SecretField], InstalledAt(secret)); err != nil {
		return fmt.Errorf("digest key in Secret %s/%s: %w; delete it, and a new one is made", k.Namespace, SecretName, err)
	}
	return nil
}

// InstalledAt is the time that the Secret bears, unless it is later than the
// Secret itself.
func InstalledAt(secret *corev1.Secret) time.Time {
	created := secret.CreationTimestamp.Time
	if kept := mark.ParseTime(secret.Annotations[mark.InstalledAt]); !kept.IsZero() && kept.Before(created) {
		return kept
	}
	return created
}

func (k *Key) use(key []byte, installed time.Time) error {
	hasher, err := digest.New(key)
	if err != nil {
		return err
	}
	k.InUse.Store(&keyInUse{key, hasher, installed})
	return nil
}

func (k *Key) Secret(key []byte, installed time.Time) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: SecretName},
		Data:       map[string][]byte{SecretField: key},
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
