package informers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/kube"
)

var apps = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "apps"}

func app(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(apps.GroupVersion().WithKind("App"))
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetResourceVersion("1")
	return u
}

// discoverable is an API server whose Apps come and go. client-go's fake must not
// be asked what is served while that changes.
type discoverable struct {
	kubernetes.Interface
	discovery.DiscoveryInterfaces

	served atomic.Pointer[metav1.APIResourceList]
}

func (d *discoverable) Discovery() discovery.DiscoveryInterfaces { return d }

func (d *discoverable) ServerResourcesForGroupVersionWithContext(_ context.Context, version string) (*metav1.APIResourceList, error) {
	if list := d.served.Load(); list != nil && list.GroupVersion == version {
		return list, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
}

// optionalFixture is an Optional over a fake API server that serves Apps once it
// is told to.
type optionalFixture struct {
	*Optional[*Unmanaged]

	t     *testing.T
	api   *discoverable
	shape atomic.Value
	tells chan Change[*Unmanaged]
}

func newOptionalFixture(t *testing.T, refuse error) *optionalFixture {
	api := &discoverable{Interface: fake.NewClientset()}
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{apps: "AppList"}, app("one"))
	if refuse != nil {
		objects.PrependReactor("list", "apps", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, refuse })
	}
	clients := &kube.Clients{Typed: api, Metadata: metadatafake.NewSimpleMetadataClient(scheme), Dynamic: objects}
	log := zaptest.NewLogger(t)
	definitions, err := NewDefinitions(clients, log)
	require.NoError(t, err)
	f := &optionalFixture{t: t, api: api, tells: make(chan Change[*Unmanaged], 10)}
	f.shape.Store("")
	f.Optional = NewOptional("tests", clients, definitions, log, func() []OptionalKind[*Unmanaged] {
		return []OptionalKind[*Unmanaged]{{GroupVersionKind: apps.GroupVersion().WithKind("App"), Keep: keepUnmanaged, Shape: f.shape.Load().(string)}}
	}, map[string]func(*Unmanaged) []string{"name": func(f *Unmanaged) []string { return []string{f.Name} }})
	_, err = f.OnChange(func(change Change[*Unmanaged]) { f.tells <- change })
	require.NoError(t, err)
	require.False(t, f.HasSynced(), "nobody knows yet what is served")

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

func (f *optionalFixture) serve(resources ...metav1.APIResource) {
	f.api.served.Store(&metav1.APIResourceList{GroupVersion: apps.GroupVersion().String(), APIResources: resources})
	f.Recheck()
}

func (f *optionalFixture) until(status KindStatus) {
	f.t.Helper()
	kind := schema.GroupKind{Group: apps.Group, Kind: "App"}
	require.Eventually(f.t, func() bool { return f.Status(kind) == status && f.HasSynced() }, time.Minute, 5*time.Millisecond)
}

func (f *optionalFixture) told() Change[*Unmanaged] {
	f.t.Helper()
	select {
	case change := <-f.tells:
		return change
	case <-time.After(time.Minute):
		f.t.Fatal("nothing was told")
		return Change[*Unmanaged]{}
	}
}

func TestOptionalKindComesAndGoes(t *testing.T) {
	verbs := metav1.Verbs{"get", "list", "watch", "patch"}
	served := metav1.APIResource{Name: "apps", Kind: "App", Namespaced: true, Verbs: verbs}
	kind := schema.GroupKind{Group: apps.Group, Kind: "App"}
	f := newOptionalFixture(t, nil)
	f.until(KindAbsent)
	_, err := f.Resource(kind)
	require.Error(t, err)

	f.serve(metav1.APIResource{Name: "apps/status", Kind: "App", Namespaced: true, Verbs: metav1.Verbs{"get", "patch"}},
		metav1.APIResource{Name: "apps", Kind: "App", Verbs: verbs})
	f.until(KindAbsent) // what no namespace holds is none of ours
	f.serve(served)
	f.until(KindFull)
	require.True(t, f.told().Added)
	found, ok := f.Get(kind, "ns", "one")
	require.True(t, ok)
	require.Equal(t, "one", found.Name)
	require.Len(t, f.List(), 1)
	require.Len(t, f.ByIndex("name", "one"), 1)
	resource, err := f.Resource(kind)
	require.NoError(t, err)
	require.Equal(t, apps, resource)

	f.shape.Store("another")
	f.Recheck()
	first, second := f.told(), f.told()
	require.NotEqual(t, first.Deleted, second.Deleted, "filled again")
	f.until(KindFull)

	f.serve()
	require.True(t, f.told().Deleted, "what is out of sight is gone")
	f.until(KindAbsent)
	require.Empty(t, f.List())
}

func TestNobodyWaitsForAKindThatCannotBeRead(t *testing.T) {
	for sentence, refusal := range map[string]error{
		"without permission":       apierrors.NewForbidden(apps.GroupResource(), "", errors.New("no")),
		"for whatever else is odd": apierrors.NewInternalError(errors.New("no")),
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newOptionalFixture(t, refusal)
			f.serve(metav1.APIResource{Name: "apps", Kind: "App", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}})
			f.until(KindRefused)
			subscription, err := f.OnChange(func(Change[*Unmanaged]) {})
			require.NoError(t, err)
			require.Empty(t, subscription.Behind())
			subscription.Cancel()
		})
	}
}

// An owner of a kind that nothing is known of must not be taken for a strange one.
func TestAKindIsAbsentOnceTheAPIServerSaidSo(t *testing.T) {
	kinds := []OptionalKind[*Unmanaged]{{GroupVersionKind: apps.GroupVersion().WithKind("App")}}
	o := NewOptional("tests", nil, nil, zaptest.NewLogger(t), func() []OptionalKind[*Unmanaged] { return kinds }, nil)
	standingAfter := func(answer served) KindStatus {
		require.Empty(t, o.adjust(t.Context(), kinds, map[schema.GroupVersion]served{apps.GroupVersion(): answer}))
		return o.Status(kinds[0].GroupKind())
	}
	require.Equal(t, KindFilling, standingAfter(served{unknown: true}))
	require.True(t, o.HasSynced(), "nobody waits for it at the start")
	require.Equal(t, KindAbsent, standingAfter(served{}))
	require.Equal(t, KindAbsent, standingAfter(served{unknown: true}), "it stays as it is")
	require.Equal(t, KindAbsent, o.Status(schema.GroupKind{Kind: "Unwanted"}))

	subscription, err := o.OnChange(func(Change[*Unmanaged]) {})
	require.NoError(t, err)
	require.Empty(t, subscription.Behind())
	kinds = append(kinds, OptionalKind[*Unmanaged]{GroupVersionKind: apps.GroupVersion().WithKind("Owner")})
	require.Equal(t, []string{"tests"}, subscription.Behind(), "a kind that was noted since has not been asked about")
	standingAfter(served{})
	require.Empty(t, subscription.Behind())
}
