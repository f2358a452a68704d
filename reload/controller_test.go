package reload

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/spec"
)

const (
	soon  = time.Minute
	quiet = 300 * time.Millisecond
)

// fixture is the module over a fake API server.
type fixture struct {
	t        *testing.T
	client   *fake.Clientset
	metadata *metadatafake.FakeMetadataClient
	clients  *kube.Clients
	caches   *informers.Caches
	key      *digestkey.Key
	live     *rules.Live[spec.Rule]
	work     []leader.Runnable
	ctx      context.Context // of the caches of the current lead
}

func testRule(t *testing.T, action spec.Action) spec.Rule {
	t.Helper()
	rule, err := spec.Compile(rules.Base{
		Name: "base", Source: rules.Source{Kind: object.Secret, Namespace: "platform", Name: "base"},
	}, spec.Config{Action: action, Debounce: &metav1.Duration{Duration: 20 * time.Millisecond}})
	require.NoError(t, err)
	return rule
}

// withDefaults ask each kubelet once.
func withDefaults(settings spec.Settings) spec.Settings {
	if settings.ConfirmRefreshAfter == nil {
		settings.ConfirmRefreshAfter = &metav1.Duration{}
	}
	settings.Default()
	return settings
}

func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	return newFixtureWith(t, spec.Settings{OptIn: new(false)}, objects...)
}

// newScopedFixture is newFixture with caches of a part of the cluster.
func newScopedFixture(t *testing.T, scope kube.Scope, objects ...runtime.Object) *fixture {
	return newFixtureOf(t, scope, spec.Settings{OptIn: new(false)}, objects...)
}

func newFixtureWith(t *testing.T, settings spec.Settings, objects ...runtime.Object) *fixture {
	return newFixtureOf(t, kube.Scope{}, settings, objects...)
}

func newFixtureOf(t *testing.T, scope kube.Scope, settings spec.Settings, objects ...runtime.Object) *fixture {
	settings = withDefaults(settings)
	f := &fixture{t: t, client: fake.NewClientset(objects...), live: rules.NewLive(rules.NewSet[spec.Rule]())}
	f.metadata = fakeMetadata(t, metadataOf(objects)...)
	f.metadata.PrependReactor("patch", "*", f.patchesTyped())
	f.clients = &kube.Clients{Typed: f.client, Metadata: f.metadata, Scope: scope}
	log := zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	f.key = digestkey.New(f.client, "headwater")
	var err error
	f.caches, err = informers.NewCaches(f.clients, f.key, log)
	require.NoError(t, err)
	staged := f.caches
	if len(scope.Lacking) > 0 { // as of a command, which reads no revisions
		staged, err = informers.NewCaches(f.clients, f.key, log)
		require.NoError(t, err)
	}
	recorded, err := revisions.NewView(f.clients, staged, f.key, "headwater", log)
	require.NoError(t, err)
	var contributed struct {
		fx.In
		Work        []leader.Runnable `group:"leader"`
		Permissions []kube.Permission `group:"permissions"`
	}
	app := fx.New(fx.NopLogger, Module,
		fx.Supply(Options{Namespace: "headwater"}, live.New(settings.Compile()), f.clients, f.caches, f.key, recorded, revisions.NewProcess(), f.live, prometheus.NewRegistry(), log, events.NewRecorder(f.client, prometheus.NewRegistry(), log)),
		fx.Populate(&contributed))
	require.NoError(t, app.Err())
	require.ElementsMatch(t, permissions(kube.Scope{}, settings, f.live.Load(), "headwater"), contributed.Permissions)
	f.work = slices.DeleteFunc(contributed.Work, func(work leader.Runnable) bool { return work.Name != "reload" })
	return f
}

// metadataOf are the Secrets and Namespaces among objects, as metadata. The fake
// does not select by label, so that clones are among them.
func metadataOf(objects []runtime.Object) (found []runtime.Object) {
	add := func(kind string, meta *metav1.ObjectMeta) {
		found = append(found, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}, ObjectMeta: *meta.DeepCopy(),
		})
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Secret:
			add("Secret", &o.ObjectMeta)
		case *corev1.Namespace:
			add("Namespace", &o.ObjectMeta)
		}
	}
	return found
}

func fakeMetadata(t *testing.T, objects ...runtime.Object) *metadatafake.FakeMetadataClient {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	return metadatafake.NewSimpleMetadataClient(scheme, objects...)
}

// patchesTyped has a patch through the metadata client change the one object
// that both clients show, and gives it a new resourceVersion, as the API server
// does and the fake does not.
func (f *fixture) patchesTyped() k8stesting.ReactionFunc {
	var version atomic.Int64
	version.Store(1000)
	react := k8stesting.ObjectReaction(f.client.Tracker())
	return func(action k8stesting.Action) (bool, runtime.Object, error) {
		handled, patched, err := react(action)
		if err != nil {
			return handled, patched, err
		}
		meta, err := apimeta.Accessor(patched)
		if err != nil {
			return true, nil, err
		}
		meta.SetResourceVersion(strconv.FormatInt(version.Add(1), 10))
		answer := apimeta.AsPartialObjectMetadata(meta)
		return true, answer, f.client.Tracker().Update(action.GetResource(), patched, action.GetNamespace())
	}
}

// lead does what the app does: load the key, fill the caches, lead; and to
// stop, end the work before the caches.
func (f *fixture) lead() (stop func()) {
	ctx, stopCaches := context.WithCancel(f.t.Context())
	leading, cancel := context.WithCancel(ctx)
	f.ctx = ctx
	require.NoError(f.t, f.key.Load(ctx))
	require.NoError(f.t, f.caches.Sources.Track(ctx, []informers.Place{{Kind: object.Secret, Namespace: "platform"}}))
	f.caches.Start(ctx)
	done := make(chan error, 1)
	go func() { done <- f.work[0].Run(leading) }()
	stop = func() {
		cancel()
		require.NoError(f.t, <-done)
		stopCaches()
		f.caches.Wait()
	}
	return stop
}

func (f *fixture) swap(set ...spec.Rule) {
	f.live.Swap(rules.NewSet(set...))
	f.caches.Start(f.ctx)
}

// patches returns the resources patched since the last expectation.
func (f *fixture) patches() []string {
	var patched []string
	for _, action := range f.metadata.Actions() {
		if patch, ok := action.(k8stesting.PatchAction); ok && action.GetVerb() == "patch" {
			require.Equal(f.t, types.MergePatchType, patch.GetPatchType())
			patched = append(patched, action.GetResource().Resource)
		}
	}
	return patched
}

// expect waits for exactly these patches.
func (f *fixture) expect(why string, want ...string) {
	f.t.Helper()
	enough := func() bool { return len(f.patches()) >= len(want) }
	require.Eventually(f.t, enough, soon, 10*time.Millisecond, why)
	tooMany := func() bool { return len(f.patches()) > len(want) }
	require.Never(f.t, tooMany, quiet, 10*time.Millisecond, why)
	require.ElementsMatch(f.t, want, f.patches(), why)
	f.metadata.ClearActions()
}

func (f *fixture) write(value string) {
	_, err := f.client.CoreV1().Secrets("team").Update(f.t.Context(), cloneOf(value), metav1.UpdateOptions{})
	require.NoError(f.t, err)
}

func (f *fixture) deployment() *appsv1.Deployment {
	deployment, err := f.client.AppsV1().Deployments("team").Get(f.t.Context(), "web", metav1.GetOptions{})
	require.NoError(f.t, err)
	return deployment
}

// cloneOf is the clone of the rule's source, its resourceVersion new with
// every value.
func cloneOf(value string) *corev1.Secret {
	now := metav1.Now()
	clone := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "base", ResourceVersion: value,
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: mark.FieldManager, Time: &now, FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`),
			}},
		},
		Data: map[string][]byte{"password": []byte(value)},
	}
	mark.Stamp(&clone.ObjectMeta, mark.Clone{Rule: "base", Source: object.Ref{Kind: object.Secret, Namespace: "platform", Name: "base"}})
	return clone
}

func mountingPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "bare", UID: "pod-uid", ResourceVersion: "1"},
		Spec: corev1.PodSpec{
			NodeName: "n", Volumes: []corev1.Volume{reloadtest.SecretVolume("v", "base")}, Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}),
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func TestPodsMissNoChangeWhenTheirOwnerTurnsReloadsOnAgain(t *testing.T) {
	web, pod := reloadtest.Web(), mountingPod()
	web.Spec.Template.Spec = pod.Spec
	web.Annotations = map[string]string{mark.Reload: "Off"}
	pod.Name, pod.CreationTimestamp = "web-6d4f5b7c9d-x2k8p", metav1.Now()
	pod.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "6d4f5b7c9d"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-6d4f5b7c9d", UID: "set-uid", Controller: new(true)}}
	f := newFixture(t, cloneOf("1"), web, pod)
	f.live.Swap(rules.NewSet(testRule(t, spec.Auto)))
	defer f.lead()()
	f.write("2")
	f.expect("its owner wants nothing")

	again := f.deployment()
	delete(again.Annotations, mark.Reload)
	again.ResourceVersion = "2"
	_, err := f.client.AppsV1().Deployments("team").Update(t.Context(), again, metav1.UpdateOptions{})
	require.NoError(t, err)
	f.expect("its owner wants it again", "pods")
}

func TestAWorkloadThatNamesItselfAsItsControllerIsRestartedAsAnyOther(t *testing.T) {
	own := reloadtest.Web()
	own.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: own.Name, UID: own.UID, Controller: new(true)}}
	f := newFixture(t, cloneOf("1"), own)
	f.live.Swap(rules.NewSet(testRule(t, spec.Auto)))
	stop := f.lead()
	f.expect("first sight is adopted", "deployments")
	f.write("2")
	f.expect("a change is one patch", "deployments")
	stop()
}

// The caches of pods and of workloads do not fill in one order.
func TestAPodThatIsSeenLateEndsTheWaitForARolloutOfTheOwner(t *testing.T) {
	web, late := reloadtest.Web(), boundBefore(time.Now())
	web.Generation, web.Spec.Replicas = 2, new(int32(1))
	web.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}
	late.Name, late.UID = "web-6d4f5b7c9d-late", "late-uid"
	f := newFixture(t, cloneOf("1"), web, boundBefore(time.Now()))
	f.live.Swap(rules.NewSet(testRule(t, spec.Auto)))
	defer f.lead()()
	f.expect("first sight is adopted", "deployments")
	changed := cloneOf("2")
	changed.ManagedFields[0].Time = &metav1.Time{Time: time.Now().Add(time.Minute)} // later than that was recorded
	_, err := f.client.CoreV1().Secrets("team").Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	f.expect("the rollout may deliver the change")
	_, err = f.client.CoreV1().Pods("team").Create(t.Context(), late, metav1.CreateOptions{})
	require.NoError(t, err)
	f.expect("its new pod is older than the change", "deployments")
}

// The API server may store a patch and fail before it answers. The caches show what it did.
func TestARestartWhoseAnswerIsLostIsNotRepeated(t *testing.T) {
	f := newFixture(t, cloneOf("1"), reloadtest.Web())
	var lose atomic.Bool
	store := f.metadata.ReactionChain[0].React
	f.metadata.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		_, stored, err := store(action)
		if lose.Swap(false) {
			err = errors.Join(err, io.ErrUnexpectedEOF)
		}
		return true, stored, err
	})
	f.live.Swap(rules.NewSet(testRule(t, spec.Auto)))
	defer f.lead()()
	f.expect("first sight is adopted", "deployments")

	lose.Store(true)
	f.write("2")
	f.expect("a change is one patch, answered or not", "deployments")
	restarted := f.deployment()
	f.edit("2000", func(web *appsv1.Deployment) { web.Status.ObservedGeneration = 1 })
	f.edit("2001", func(web *appsv1.Deployment) { web.Labels = map[string]string{"a": "b"} })
	f.expect("its pods are replaced, and that is all")
	require.Equal(t, restarted.Spec.Template.Annotations, f.deployment().Spec.Template.Annotations)

	lose.Store(true)
	f.write("3")
	f.expect("the next change, too", "deployments")
	f.write("2")
	f.expect("what the pods run is known: they run 3", "deployments")
}

// A fresh leader cannot tell whether a restart without its stamp reached every pod. It
// relies on what the leader recorded that was running.
func TestARestartThatLostItsStampIsCheckedOnce(t *testing.T) {
	for name, undo := range map[string]func(web, adopted *appsv1.Deployment){
		"taken off the template": func(web, _ *appsv1.Deployment) { web.Spec.Template.Annotations = nil },
		"rolled back": func(web, adopted *appsv1.Deployment) {
			web.Annotations, web.Spec.Template = adopted.Annotations, adopted.Spec.Template
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, cloneOf("1"), reloadtest.Web())
			f.live.Swap(rules.NewSet(testRule(t, spec.Auto)))
			stop := f.lead()
			f.expect("first sight is adopted", "deployments")
			adopted := f.deployment()
			f.write("2")
			f.expect("a change is one patch", "deployments")
			f.edit("2000", func(web *appsv1.Deployment) { web.Status.ObservedGeneration = 1 })
			f.edit("2001", func(web *appsv1.Deployment) { undo(web, adopted) })
			f.expect("every pod was replaced, which is recorded", "deployments")
			require.Empty(t, f.deployment().Spec.Template.Annotations, "so nothing restarts")
			stop()

			again := f.next(cloneOf("2"), f.deployment(), boundBefore(time.Now()))
			stop = again.lead()
			again.expect("the next leader restarts nothing, and writes nothing")
			again.write("3")
			again.expect("a change is one patch", "deployments")
			require.NotContains(t, again.deployment().Annotations, mark.RestartChecked, "the new restart has its stamp")
			stop()
		})
	}
}

func TestALostStampThatNobodyCheckedIsInDoubt(t *testing.T) {
	f := newFixture(t, cloneOf("1"), reloadtest.Web())
	f.live.Swap(rules.NewSet(testRule(t, spec.Auto)))
	stop := f.lead()
	f.expect("first sight is adopted", "deployments")
	f.write("2")
	f.expect("a change is one patch", "deployments")
	stop()
	web := f.deployment()
	web.Spec.Template.Annotations = nil

	again := f.next(cloneOf("2"), web, boundBefore(time.Now()))
	stop = again.lead()
	again.expect("a pod is older than the data", "deployments")
	require.NotEmpty(t, again.deployment().Spec.Template.Annotations[mark.RestartedFor])
	stop()
}

// next returns a cluster of these objects for a leader that takes over with the digest
// key of f.
func (f *fixture) next(objects ...runtime.Object) *fixture {
	next := newFixture(f.t, objects...)
	_, err := next.client.CoreV1().Secrets("headwater").Create(f.t.Context(), f.digestKeySecret(), metav1.CreateOptions{})
	require.NoError(f.t, err)
	next.live.Swap(rules.NewSet(testRule(f.t, spec.Auto)))
	return next
}

// edit writes the Deployment web at that resourceVersion.
func (f *fixture) edit(version string, change func(web *appsv1.Deployment)) {
	web := f.deployment()
	change(web)
	web.ResourceVersion = version
	_, err := f.client.AppsV1().Deployments("team").Update(f.t.Context(), web, metav1.UpdateOptions{})
	require.NoError(f.t, err)
}

// boundBefore returns a pod of the Deployment web that got its node a second before.
func boundBefore(at time.Time) *corev1.Pod {
	bound := metav1.NewTime(at.Add(-time.Second))
	web := reloadtest.Web()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: web.Namespace, Name: "web-6d4f5b7c9d-x2k8p", UID: "pod-uid", ResourceVersion: "1", CreationTimestamp: bound,
			Labels:          map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "6d4f5b7c9d"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-6d4f5b7c9d", UID: "set-uid", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "n", Containers: web.Spec.Template.Spec.Containers, Volumes: web.Spec.Template.Spec.Volumes},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: bound}},
		},
	}
}

func (f *fixture) digestKeySecret() *corev1.Secret {
	secret, err := f.client.CoreV1().Secrets("headwater").Get(f.t.Context(), digestkey.SecretName, metav1.GetOptions{})
	require.NoError(f.t, err)
	secret.ResourceVersion = ""
	return secret
}

func TestFirstRuleAddedLiveBeginsTheWork(t *testing.T) {
	f := newFixture(t, cloneOf("1"), reloadtest.Web(), mountingPod())
	stop := f.lead()
	require.Never(t, f.consumersRead, quiet, 10*time.Millisecond, "without rules no workload is read")

	f.swap(testRule(t, spec.Auto))
	f.expect("the first rule begins the work", "deployments", "pods")
	f.swap()
	f.write("2")
	f.expect("without rules a change is nothing")
	f.swap(testRule(t, spec.Auto))
	f.expect("until there is one again", "deployments", "pods")
	stop()
}

func (f *fixture) consumersRead() bool {
	return slices.ContainsFunc(f.client.Actions(), func(action k8stesting.Action) bool {
		return action.GetResource().Resource == "deployments"
	})
}

func TestSourceItselfIsGovernedInItsOwnNamespace(t *testing.T) {
	source := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "base", ResourceVersion: "1"},
		Data:       map[string][]byte{"password": []byte("1")},
	}
	consumer := reloadtest.Web()
	consumer.Namespace = "platform"
	f := newFixture(t, source, consumer)
	f.live.Swap(rules.NewSet(testRule(t, spec.Auto)))
	stop := f.lead()
	f.expect("first sight is adopted", "deployments")

	changed := source.DeepCopy()
	changed.ResourceVersion, changed.Data["password"] = "2", []byte("2")
	_, err := f.client.CoreV1().Secrets("platform").Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	f.expect("a change is one patch", "deployments")
	stop()
}
