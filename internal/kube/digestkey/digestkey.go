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

// SecretName is the Secret in Headwater's own namespace that holds the key of all
// digests. If it does not exist at start, Headwater creates a new key and adopts a
// new baseline for every workload.
const SecretName = "headwater-digest-key"

// SecretField is the data key of that Secret.
const SecretField = "key"

// Key provides the Hasher after Load or Read.
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

// New returns a Key that is stored in namespace and not loaded yet.
func New(client kubernetes.Interface, namespace string) *Key {
	return &Key{Client: client, Namespace: namespace}
}

// NewEphemeral returns a random Key, for digests that are never stored.
func NewEphemeral() (*Key, error) {
	k := &Key{}
	if err := k.use(newKey(), time.Time{}); err != nil {
		return nil, fmt.Errorf("ephemeral digest key: %w", err)
	}
	return k, nil
}

// Hasher returns the hasher. It fails before Load or Read succeeded.
func (k *Key) Hasher() (*digest.Hasher, error) {
	if inUse := k.InUse.Load(); inUse != nil {
		return inUse.Hasher, nil
	}
	return nil, errors.New("the digest key is not loaded yet")
}

// ID is the Hasher's. It is empty before Load or Read succeeded, and for an ephemeral key.
func (k *Key) ID() string {
	if inUse := k.InUse.Load(); inUse != nil && !inUse.Installed.IsZero() {
		return inUse.Hasher.ID()
	}
	return ""
}

// InstalledAt returns when the key was created, which is when Headwater was
// installed, by the API server's clock in whole seconds. It is zero before Load
// succeeded, and for an ephemeral key. If Headwater restores a deleted Secret, the
// time stays. Deleting the Secret while no replica runs makes a new installation:
// baselines of the old key are lost.
func (k *Key) InstalledAt() time.Time {
	if inUse := k.InUse.Load(); inUse != nil {
		return inUse.Installed
	}
	return time.Time{}
}

// Read is Load without creating a key. It returns the API server's error, wrapped,
// if the Secret does not exist or the caller may not read it.
func (k *Key) Read(ctx context.Context) error {
	secret, err := k.Client.CoreV1().Secrets(k.Namespace).Get(ctx, SecretName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("digest key: %w", err)
	}
	return k.take(secret)
}

// Load reads the key. It creates the Secret if it does not exist. If several
// replicas start at once, the first to create the Secret wins.
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
		return fmt.Errorf("digest key in Secret %s/%s: %w; delete the Secret, and Headwater creates a new key", k.Namespace, SecretName, err)
	}
	return nil
}

// InstalledAt returns the time in the Secret's annotation, or the Secret's creation
// time if that is earlier.
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

// Secret returns the Secret that stores key. A zero installed sets no annotation.
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
