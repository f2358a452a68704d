package deliverer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/deliverer"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

const ownNamespace = "headwater-system"

var blogSecret = object.Ref{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"}

// fixture is a Deliverer on a cluster with the source of the rule blog, and with no
// namespace to deliver to.
type fixture struct {
	*testing.T

	client *fake.Clientset
	live   *rules.Live[spec.Rule]
	// recorded is what the Deliverer sees.
	recorded *revisions.View
	// taken makes the next creation fail, as if another leader were faster. With immutable, the
	// next request is stored, and no answer to one.
	taken, immutable, asked atomic.Bool
	// version is the last resourceVersion: a fake API server gives none.
	version atomic.Int64
}

// staged is the rule blog, whose first stage passes only when somebody promotes it.
func staged(t *testing.T) spec.Rule {
	t.Helper()
	return *synctest.Rule(t, func(c *spec.Config) {
		c.Delivery = &stages.Delivery{
			Stages: []stages.Stage{{Name: "canary", Percent: 10, Approval: true, Soak: &metav1.Duration{}}}, Gate: stages.Gate{Consumers: stages.GateNone},
		}
	})
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "source-1"}, Data: map[string][]byte{"k": []byte("first")}}
	requests := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: survey.DeliveriesName}}
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	f := &fixture{T: t, client: fake.NewClientset(source, requests), live: rules.NewLive(rules.NewSet(staged(t)))}
	f.client.PrependReactor("*", "configmaps", f.versioned)
	clients := &kube.Clients{Typed: f.client, Metadata: metadatafake.NewSimpleMetadataClient(scheme)}
	key, err := digestkey.NewEphemeral()
	require.NoError(t, err)
	caches, err := informers.NewCaches(clients, key, zap.NewNop())
	require.NoError(t, err)
	recorded, err := revisions.NewView(clients, caches, key, ownNamespace, zap.NewNop())
	require.NoError(t, err)
	f.recorded = recorded
	f.recorded = recorded
	reader, err := survey.NewReader(f.live, clients, caches, recorded, ownNamespace, zap.NewNop())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, caches.Sources.Track(ctx, []informers.Place{{Kind: object.Secret, Namespace: "platform"}}))
	caches.Start(ctx)
	require.True(t, caches.AwaitFull(ctx))
	registry := prometheus.NewRegistry()
	d := deliverer.New(deliverer.Params{
		Reader: reader, OwnNamespace: ownNamespace, Writer: f.writer(), Process: revisions.NewProcess(),
		Events: events.NewRecorder(f.client, registry, zap.NewNop()), Registry: registry, Log: zap.NewNop(),
	})
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		caches.Wait()
	})
	return f
}

// writer returns a Writer to the fake cluster.
func (f *fixture) writer() *kube.Writer {
	f.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if refused := apierrors.APIStatus(nil); errors.As(f.write(r), &refused) {
			w.WriteHeader(int(refused.Status().Code))
			_ = json.NewEncoder(w).Encode(refused.Status())
			return
		}
		_, _ = w.Write([]byte(`{"kind":"Secret","apiVersion":"v1"}`))
	}))
	f.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(f, err)
	return kube.NewWriter(&kube.Clients{Typed: client})
}

func (f *fixture) write(r *http.Request) error {
	secrets := f.client.CoreV1().Secrets(ownNamespace)
	if r.Method == http.MethodDelete {
		return secrets.Delete(r.Context(), path.Base(r.URL.Path), metav1.DeleteOptions{})
	}
	var secret corev1.Secret
	sent, err := io.ReadAll(r.Body)
	if err == nil {
		err = runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), sent, &secret)
	}
	if err != nil {
		return err
	}
	read := secret.ResourceVersion
	secret.UID, secret.ResourceVersion = "uid", f.nextVersion()
	if r.Method == http.MethodPut {
		if stored, err := secrets.Get(r.Context(), secret.Name, metav1.GetOptions{}); err != nil || stored.ResourceVersion != read {
			return apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, err)
		}
		_, err := secrets.Update(r.Context(), &secret, metav1.UpdateOptions{})
		return err
	}
	if f.taken.Swap(false) {
		return apierrors.NewAlreadyExists(corev1.Resource("secrets"), secret.Name)
	}
	_, err = secrets.Create(r.Context(), &secret, metav1.CreateOptions{})
	return err
}

func (f *fixture) nextVersion() string { return strconv.FormatInt(f.version.Add(1), 10) }

// versioned gives a written object a resourceVersion, without which caches take every
// write for a repeat of the first.
func (f *fixture) versioned(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetVerb() == "update" && f.immutable.Load() && f.asked.Swap(true) {
		return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, survey.DeliveriesName, nil)
	}
	if write, isWrite := action.(clienttesting.CreateAction); isWrite {
		written, err := meta.Accessor(write.GetObject())
		if err != nil {
			return true, nil, err
		}
		written.SetResourceVersion(f.nextVersion())
	}
	return false, nil, nil
}

func (f *fixture) edit(value string) {
	f.Helper()
	source, err := f.client.CoreV1().Secrets("platform").Get(f.Context(), "blogsecret", metav1.GetOptions{})
	require.NoError(f, err)
	source = source.DeepCopy()
	source.ResourceVersion = f.nextVersion()
	source.Data = map[string][]byte{"k": []byte(value)}
	_, err = f.client.CoreV1().Secrets("platform").Update(f.Context(), source, metav1.UpdateOptions{})
	require.NoError(f, err)
}

// verdicts returns the verdict on each recorded revision, and whether it is pinned, as the
// Deliverer sees it: nobody asks anything of what it has yet to see.
func (f *fixture) verdicts() map[int]string {
	verdicts := map[int]string{}
	for _, one := range f.recorded.Stored(revisions.Key{Rule: "blog", Source: blogSecret}) {
		verdicts[one.Number] = string(one.Verdict)
		if one.Pinned != "" {
			verdicts[one.Number] += ", pinned"
		}
	}
	return verdicts
}

// lazily formats the verdicts when a wait has failed.
type lazily struct{ *fixture }

func (l lazily) String() string { return fmt.Sprint(l.verdicts()) }

// await waits until the revisions have these verdicts.
func (f *fixture) await(want map[int]string) {
	f.Helper()
	require.Eventually(f, func() bool { return maps.Equal(want, f.verdicts()) }, time.Minute, 10*time.Millisecond, "want %v, have %v", want, lazily{f})
}

// askedAt is when each request is made: one that is an hour old is not done.
var askedAt = time.Now().Truncate(time.Second)

// store stores a request as somebody in another time zone writes it.
func (f *fixture) store(request delivery.Request) {
	f.Helper()
	request.By, request.At = "jane", askedAt.In(time.FixedZone("", 5400))
	require.NoError(f, survey.ChangeRequests(f.Context(), f.client, ownNamespace, "blog", func(stored survey.Requests) { stored[blogSecret.String()] = request }))
}

// ask stores a request, and waits for the answer: why it is refused, or nothing.
func (f *fixture) ask(request delivery.Request) (refused string) {
	f.Helper()
	f.store(request)
	require.Eventually(f, func() bool {
		stored, err := f.client.CoreV1().ConfigMaps(ownNamespace).Get(f.Context(), survey.DeliveriesName, metav1.GetOptions{})
		require.NoError(f, err)
		var left map[string]delivery.Request
		if text := stored.Data["blog"]; text != "" {
			require.NoError(f, json.Unmarshal([]byte(text), &left))
		}
		refused = left["Secret/platform/blogsecret"].Refused
		return len(left) == 0 || refused != ""
	}, time.Minute, 10*time.Millisecond)
	return refused
}

func TestEachContentIsRecordedOnce(t *testing.T) {
	f := newFixture(t)
	f.await(map[int]string{1: "Delivered"})
	f.edit("second")
	f.await(map[int]string{1: "Delivered", 2: "Delivering"})
	f.edit("first")
	f.await(map[int]string{1: "Delivered", 2: "Superseded"})
	f.edit("second")
	f.await(map[int]string{1: "Delivered", 2: "Superseded", 3: "Delivering"})
	f.ask(delivery.Request{Verb: delivery.Promote, Revision: 3})
	f.await(map[int]string{1: "Delivered", 2: "Superseded", 3: "Delivered"})
}

func TestARequestThatIsDoneTwiceIsDoneOnce(t *testing.T) {
	f := newFixture(t)
	f.await(map[int]string{1: "Delivered"})
	f.edit("second")
	f.await(map[int]string{1: "Delivered", 2: "Delivering"})
	require.Empty(t, f.ask(delivery.Request{Verb: delivery.Rollback, Revision: 2}))
	f.await(map[int]string{1: "Delivered", 2: "Rejected"})
	require.Equal(t, "revision 2 is Rejected, so there is nothing to pause", f.ask(delivery.Request{Verb: delivery.Pause, Revision: 2})) // so that it is not the last one
	require.NotEmpty(t, f.ask(delivery.Request{Verb: delivery.Rollback, Revision: 2}))
	f.await(map[int]string{1: "Delivered", 2: "Rejected"})
}

func TestARequestThatCannotBeAnsweredIsDoneOnce(t *testing.T) {
	f := newFixture(t)
	f.await(map[int]string{1: "Delivered"})
	f.edit("second")
	f.await(map[int]string{1: "Delivered", 2: "Delivering"})
	f.immutable.Store(true)
	f.store(delivery.Request{Verb: delivery.Rollback, To: 1})
	f.await(map[int]string{1: "Delivered, pinned", 2: "Rejected"})
	f.edit("third")
	f.await(map[int]string{1: "Delivered", 2: "Rejected", 3: "Delivering"})
	f.edit("fourth")
	f.await(map[int]string{1: "Delivered", 2: "Rejected", 3: "Superseded", 4: "Delivering"})
}

func TestARollbackEndsWhenAnotherRevisionIsUnderWay(t *testing.T) {
	f := newFixture(t)
	f.await(map[int]string{1: "Delivered"})
	f.edit("second")
	f.await(map[int]string{1: "Delivered", 2: "Delivering"})
	f.ask(delivery.Request{Verb: delivery.Rollback, To: 1})
	f.await(map[int]string{1: "Delivered, pinned", 2: "Rejected"})
	f.ask(delivery.Request{Verb: delivery.Retry, Revision: 2})
	f.await(map[int]string{1: "Delivered", 2: "Delivering"})
}

// A revision that somebody rolled back from is not what comes next when the rollback ends.
func TestWhatWasRolledBackFromDoesNotComeBack(t *testing.T) {
	f := newFixture(t)
	f.await(map[int]string{1: "Delivered"})
	f.edit("second")
	f.await(map[int]string{1: "Delivered", 2: "Delivering"})
	f.ask(delivery.Request{Verb: delivery.Promote, Revision: 2})
	f.await(map[int]string{1: "Delivered", 2: "Delivered"})
	f.ask(delivery.Request{Verb: delivery.Rollback, To: 1})
	f.await(map[int]string{1: "Delivered, pinned", 2: "Delivered"})
	f.edit("third")
	f.await(map[int]string{1: "Delivered", 2: "Rejected", 3: "Delivering"})
	f.ask(delivery.Request{Verb: delivery.Rollback, Revision: 3})
	f.await(map[int]string{1: "Delivered", 2: "Rejected", 3: "Rejected"})
}

// `headwater retry` is about the newest revision.
func TestWhatWasRejectedIsTheNewestWhenTheSourceHasItAgain(t *testing.T) {
	f := newFixture(t)
	f.await(map[int]string{1: "Delivered"})
	f.edit("second")
	f.await(map[int]string{1: "Delivered", 2: "Delivering"})
	f.ask(delivery.Request{Verb: delivery.Rollback, Revision: 2})
	f.edit("third")
	f.await(map[int]string{1: "Delivered", 2: "Rejected", 3: "Delivering"})
	f.edit("second")
	f.await(map[int]string{1: "Delivered", 2: "Rejected", 3: "Superseded", 4: "Rejected"})
	f.ask(delivery.Request{Verb: delivery.Retry, Revision: 4})
	f.await(map[int]string{1: "Delivered", 2: "Rejected", 3: "Superseded", 4: "Delivering"})
}

func TestANumberThatAnotherLeaderTookIsTriedAgain(t *testing.T) {
	f := newFixture(t)
	f.await(map[int]string{1: "Delivered"})
	f.taken.Store(true)
	f.edit("second")
	f.await(map[int]string{1: "Delivered", 2: "Delivering"})
}

func TestTheRevisionsOfARuleThatKeepsNoneAreDeleted(t *testing.T) {
	f := newFixture(t)
	f.await(map[int]string{1: "Delivered"})
	f.edit("second")
	f.await(map[int]string{1: "Delivered", 2: "Delivering"})
	f.live.Swap(rules.NewSet(*synctest.Rule(t, nil)))
	f.await(map[int]string{})
}

func TestASuspendedRuleDeliversNothingAndRefusesRequests(t *testing.T) {
	f := newFixture(t)
	f.await(map[int]string{1: "Delivered"})
	f.edit("second")
	f.await(map[int]string{1: "Delivered", 2: "Delivering"})
	suspended := staged(t)
	suspended.Suspended = true
	f.live.Swap(rules.NewSet(suspended))
	require.Contains(t, f.ask(delivery.Request{Verb: delivery.Promote, Revision: 2}), "the rule is suspended")
	f.edit("third")
	require.NotEmpty(t, f.ask(delivery.Request{Verb: delivery.Rollback, Revision: 2})) // the edit is seen by then
	require.Equal(t, map[int]string{1: "Delivered", 2: "Delivering"}, f.verdicts())
	f.live.Swap(rules.NewSet(staged(t)))
	f.await(map[int]string{1: "Delivered", 2: "Superseded", 3: "Delivering"})
}
