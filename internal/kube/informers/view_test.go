package informers

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

const deadline = time.Minute

func secretView(t *testing.T, log *zap.Logger, keep func(any) (*Unmanaged, error), objects ...string) (*View[*Unmanaged], *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset()
	for _, name := range objects {
		_, err := client.CoreV1().Secrets("ns").Create(t.Context(), secretCalled(name), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	view, err := NewView("secrets", coreinformers.NewSecretInformer(client, "ns", 0, cache.Indexers{}), log, keep)
	require.NoError(t, err)
	require.NoError(t, view.AddIndex("name", func(f *Unmanaged) []string { return []string{f.Name} }))
	return view, client
}

func secretCalled(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "1"},
		Data:       map[string][]byte{"k": []byte("c4n4ry")},
	}
}

func runView(t *testing.T, view *View[*Unmanaged]) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { view.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	require.Eventually(t, view.HasSynced, deadline, time.Millisecond)
}

func TestAnObjectThatCannotBeReadIsLeftOutAndNamedWithoutItsContent(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	view, _ := secretView(t, zap.New(core), func(obj any) (*Unmanaged, error) {
		if secret, ok := obj.(*corev1.Secret); ok && secret.Name == "bad" {
			return nil, errors.New("no")
		}
		return keepUnmanaged(obj)
	}, "good", "bad")
	runView(t, view)
	_, found := view.Get("ns", "bad")
	require.False(t, found)
	require.Len(t, view.List(), 1)
	require.Empty(t, view.ByIndex("name", "bad"))
	require.Len(t, view.ByIndex("name", "good"), 1)
	left := logs.FilterMessage("object left out of the cache").All()
	require.NotEmpty(t, left)
	require.Equal(t, "bad", left[0].ContextMap()["name"])
	for _, entry := range logs.All() {
		for _, value := range entry.ContextMap() {
			require.NotContains(t, value, "c4n4ry")
		}
	}
}

func TestASubscriberSeesOneThatCannotBeReadGoAndCome(t *testing.T) {
	view, client := secretView(t, zap.NewNop(), func(obj any) (*Unmanaged, error) {
		if secret, ok := obj.(*corev1.Secret); ok && secret.Labels["bad"] != "" {
			return nil, errors.New("no")
		}
		return keepUnmanaged(obj)
	}, "good")
	runView(t, view)
	changes := make(chan Change[*Unmanaged], 8)
	_, err := view.OnChange(func(c Change[*Unmanaged]) { changes <- c })
	require.NoError(t, err)
	for version, added := range []bool{true, false, true} {
		if version > 0 {
			secret := secretCalled("good")
			secret.ResourceVersion = strconv.Itoa(version + 1)
			if !added {
				secret.Labels = map[string]string{"bad": "yes"}
			}
			_, err := client.CoreV1().Secrets("ns").Update(t.Context(), secret, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		select {
		case change := <-changes:
			require.Equal(t, added, change.Added)
			require.Equal(t, !added, change.Deleted)
			require.Equal(t, "good", change.Latest().Name)
		case <-time.After(deadline):
			require.FailNow(t, "no change was seen")
		}
	}
}

func TestASubscriberSeesWhatIsThereAndThenEveryChange(t *testing.T) {
	view, client := secretView(t, zap.NewNop(), keepUnmanaged, "first")
	runView(t, view)
	type seen struct {
		name           string
		added, deleted bool
	}
	changes := make(chan seen, 8)
	subscription, err := view.OnChange(func(c Change[*Unmanaged]) {
		changes <- seen{c.Latest().Name, c.Added, c.Deleted}
	})
	require.NoError(t, err)
	next := func() seen {
		select {
		case change := <-changes:
			return change
		case <-time.After(deadline):
			require.FailNow(t, "no change was seen")
			return seen{}
		}
	}
	require.Equal(t, seen{"first", true, false}, next())
	require.Eventually(t, func() bool { return len(subscription.Behind()) == 0 }, deadline, time.Millisecond)
	secrets := client.CoreV1().Secrets("ns")
	changed := secretCalled("first")
	changed.ResourceVersion = "2"
	_, err = secrets.Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, seen{"first", false, false}, next())
	require.NoError(t, secrets.Delete(t.Context(), "first", metav1.DeleteOptions{}))
	require.Equal(t, seen{"first", false, true}, next())
	subscription.Cancel()
}
