package measure

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Writers is how many bare writes are in flight at once: as many as Headwater
// has workers.
const Writers = 32

// Secret is 1 KiB, and a version to tell it by.
func Secret(namespace, name, version string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string][]byte{
			"payload": []byte(strings.Repeat(rand.Text(), 40)[:1024]),
			"version": []byte(version),
		},
	}
}

// Create creates secret.
func Create(ctx context.Context, client kubernetes.Interface, secret *corev1.Secret) error {
	_, err := client.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// Update overwrites secret.
func Update(ctx context.Context, client kubernetes.Interface, secret *corev1.Secret) error {
	_, err := client.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{})
	return err
}

// Parallel calls do for 0 … n-1, Writers of them at once, until one fails.
func Parallel(ctx context.Context, n int, do func(context.Context, int) error) error {
	return ParallelBy(ctx, Writers, n, do)
}

// ParallelBy is Parallel with another number of writers.
func ParallelBy(ctx context.Context, writers, n int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
