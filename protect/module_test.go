package protect

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/serve"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

type contributions struct {
	fx.In

	Leader      []leader.Runnable `group:"leader"`
	Replica     []leader.Runnable `group:"replica"`
	Permissions []kube.Permission `group:"permissions"`
	Checks      []serve.Check     `group:"checks"`
	Caches      *informers.Caches
	Rules       *rules.Live[spec.Rule]
}

func build(t *testing.T, client *fake.Clientset, options Options, set *rules.Set[spec.Rule]) (got contributions) {
	t.Helper()
	log := zaptest.NewLogger(t)
	clients := newFakeClients(t, client)
	caches := newCaches(t, clients)
	client.ClearActions()
	events := events.NewRecorder(client, prometheus.NewRegistry(), log)
	key, err := digestkey.NewEphemeral()
	require.NoError(t, err)
	app := fxtest.New(t, Module, fx.NopLogger,
		fx.Supply(clients, caches, key, events, prometheus.NewRegistry(), rules.NewLive(set), options, identified(), live.New(spec.Settings{Engine: spec.EngineWebhook})),
		fx.Supply(fx.Annotate(log, fx.As(fx.Self()))),
		fx.Populate(&got))
	app.RequireStart().RequireStop()
	return got
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

func TestModule(t *testing.T) {
	defer goleak.VerifyNone(t)
	address := freeAddress(t)
	client := fake.NewClientset(binding("admins", "cluster-admin", "root"))
	got := build(t, client, Options{Namespace: "headwater", WebhookURL: "https://" + address, WebhookAddress: address}, rules.NewSet[spec.Rule]())
	require.Len(t, got.Leader, 2)
	require.Len(t, got.Replica, 2)
	require.Empty(t, got.Permissions, "nothing is needed without a rule")
	require.Len(t, got.Checks, 1)
	require.Empty(t, client.Actions(), "building asks nothing of the cluster")

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 4)
	for _, runnable := range append(got.Leader, got.Replica...) {
		go func() { ended <- runnable.Run(ctx) }()
	}
	require.Never(t, func() bool { return reachable(address) || len(protecttest.Writes(client, "")) > 0 }, 200*time.Millisecond, 20*time.Millisecond)
	require.NoError(t, got.Checks[0].Ready())

	got.Rules.Swap(protecttest.Rules())
	got.Caches.Start(ctx)
	require.Eventually(t, func() bool {
		_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, spec.ConfigurationName, metav1.GetOptions{})
		return err == nil && got.Checks[0].Ready() == nil && reachable(address)
	}, protecttest.Soon, 10*time.Millisecond)

	stop()
	for range 4 {
		require.NoError(t, <-ended)
	}
	got.Caches.Wait()
	_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), spec.ConfigurationName, metav1.GetOptions{})
	require.NoError(t, err, "a stopped Headwater still protects")
}

func reachable(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func TestModuleNamesItsPermissions(t *testing.T) {
	got := build(t, fake.NewClientset(), Options{Namespace: "headwater"}, protecttest.Rules())
	require.NotEmpty(t, got.Permissions)
	for _, permission := range got.Permissions {
		require.NotEmpty(t, permission.For)
		require.NotContains(t, permission.Verbs, "*")
	}
	require.Error(t, got.Checks[0].Ready(), "it is not ready before it listens")
}

func TestModuleFailsOnABusyAddress(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	got := build(t, fake.NewClientset(), Options{Namespace: "headwater", WebhookAddress: listener.Addr().String()}, protecttest.Rules())
	for _, runnable := range got.Replica {
		if runnable.Name == "protect webhook" {
			require.ErrorContains(t, runnable.Run(t.Context()), "is in use")
		}
	}
}

func TestModuleRefusesABadURL(t *testing.T) {
	_, err := newModule(params{Options: Options{Namespace: "headwater", WebhookURL: "http://127.0.0.1"}, Log: zap.NewNop()})
	require.ErrorContains(t, err, "webhook URL")
}

func TestWorldFromCaches(t *testing.T) {
	client := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret"}})
	clients := newFakeClients(t, client)
	caches := newCaches(t, clients)
	access, err := watchBindings(clients, caches, informers.Always, zap.NewNop())
	require.NoError(t, err)
	identity := &Identity{}
	m := cachedWorld{identity: identity, settings: live.New(spec.Settings{SystemIdentities: []string{"x"}}), caches: caches, access: access, clock: clock.RealClock{}}
	require.Empty(t, m.world().Headwater)
	identity.Set("headwater")
	world := m.world()
	require.Equal(t, "headwater", world.Headwater)
	require.Equal(t, []string{"x"}, world.SystemIdentities)
	require.False(t, m.ready())
	require.False(t, world.Terminating("platform"), "what is not known yet is not in deletion")
	require.True(t, world.HasSource(protecttest.BlogRule()), "what is not known yet is held to be there")
}
