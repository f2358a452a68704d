package reload

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// ownSecret is nobody's but its namespace's.
func ownSecret(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, ResourceVersion: value},
		Data:       map[string][]byte{"password": []byte(value)},
	}
}

// asking is a Deployment whose owner asks to have it restarted for a Secret.
func asking(name, secret string) *appsv1.Deployment {
	deployment := reloadtest.Web()
	deployment.Name, deployment.UID = name, "uid-"+deployment.UID
	deployment.Annotations = map[string]string{mark.Reload: "Auto"}
	deployment.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{reloadtest.SecretEnv(secret, "password")}
	return deployment
}

// gets are the Secrets of team that were read one by one.
func (f *fixture) gets() (names []string) {
	for _, action := range f.client.Actions() {
		if get, is := action.(k8stesting.GetAction); is && action.GetVerb() == "get" && action.GetNamespace() == "team" {
			names = append(names, get.GetName())
		}
	}
	return names
}

func (f *fixture) baseline(deployment string) string {
	found, err := f.client.AppsV1().Deployments("team").Get(f.t.Context(), deployment, metav1.GetOptions{})
	require.NoError(f.t, err)
	return found.Annotations[mark.Baseline]
}

// Invariant 3.
func TestAnObjectThatCannotBeReadDelaysNoOther(t *testing.T) {
	f := newFixtureWith(t, spec.Settings{OptIn: new(true)}, ownSecret("bad", "1"), ownSecret("good", "1"), asking("a", "bad"), asking("b", "good"))
	refusing := make(chan struct{})
	f.client.PrependReactor("get", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		get, _ := action.(k8stesting.GetAction)
		select {
		case <-refusing:
			return false, nil, nil
		default:
			return get.GetName() == "bad", nil, errors.New("no c4n4ry here")
		}
	})
	stop := f.lead()
	defer stop()
	require.Eventually(t, func() bool { return f.baseline("b") != "" }, soon, 10*time.Millisecond)
	require.Empty(t, f.baseline("a"))
	close(refusing)
	require.Eventually(t, func() bool { return f.baseline("a") != "" }, soon, 10*time.Millisecond)
}

func TestManyConsumersShareOneRead(t *testing.T) {
	f := newFixtureWith(t, spec.Settings{OptIn: new(true)}, ownSecret("own", "1"), ownSecret("other", "1"), asking("a", "own"), asking("b", "own"), asking("c", "own"))
	stop := f.lead()
	defer stop()
	require.Eventually(t, func() bool { return f.baseline("a") != "" && f.baseline("b") != "" && f.baseline("c") != "" }, soon, 10*time.Millisecond)
	count := func(name string) (times int) {
		for _, got := range f.gets() {
			if got == name {
				times++
			}
		}
		return times
	}
	require.Equal(t, 1, count("own"))
	require.Zero(t, count("other"))
}

// Invariant 12: what is kept is bounded by what is asked for, and holds no data.
func TestWhatNobodyAsksAboutAnyMoreIsForgotten(t *testing.T) {
	own := object.Ref{Kind: object.Secret, Namespace: "team", Name: "own"}
	f := newFixture(t, ownSecret("own", "7"))
	wanted := true
	var done []object.Ref
	stop := f.lead()
	defer stop()
	require.Eventually(t, func() bool { return len(f.caches.Pending()) == 0 }, soon, 10*time.Millisecond)
	r := gather.NewReader(f.clients, f.caches, f.key, prometheus.NewRegistry(), zaptest.NewLogger(t))
	r.Wanted, r.Done = func(object.Ref) bool { return wanted }, func(ref object.Ref, _ *object.Digested) { done = append(done, ref) }

	require.NoError(t, r.Reconcile(t.Context(), own))
	require.Equal(t, []object.Ref{own}, done)
	known := r.At(own, "7")
	require.Len(t, known.Digests, 1)
	require.NotNil(t, r.At(own, "6"), "what is newer than the cache is as good")
	require.Nil(t, r.At(own, "8"), "what is older is not")
	require.NoError(t, r.Reconcile(t.Context(), own))
	require.Len(t, done, 1, "it has not changed")

	wanted = false
	require.NoError(t, r.Reconcile(t.Context(), own))
	require.Nil(t, r.At(own, "7"))
	require.NoError(t, r.Reconcile(t.Context(), object.Ref{Kind: object.Secret, Namespace: "team", Name: "gone"}))
}

func TestLabelsAreKeptWhereASectionAsksForThem(t *testing.T) {
	labelled := ownSecret("own", "7")
	labelled.Labels = map[string]string{"a": "b"}
	f := newFixture(t, labelled)
	own, ask := object.Ref{Kind: object.Secret, Namespace: "team", Name: "own"}, false
	stop := f.lead()
	defer stop()
	require.Eventually(t, func() bool { return len(f.caches.Pending()) == 0 }, soon, 10*time.Millisecond)
	r := gather.NewReader(f.clients, f.caches, f.key, prometheus.NewRegistry(), zaptest.NewLogger(t))
	r.Wanted, r.Done = func(object.Ref) bool { return true }, func(object.Ref, *object.Digested) {}
	r.Labels = func() bool { return ask }

	require.NoError(t, r.Reconcile(t.Context(), own))
	require.Nil(t, r.At(own, "7").Labels, "nobody asks for them, and they take memory")
	ask = true
	require.Nil(t, r.At(own, "7"), "it is to be read again")
	require.NoError(t, r.Reconcile(t.Context(), own))
	require.Equal(t, labelled.Labels, r.At(own, "7").Labels)
}
