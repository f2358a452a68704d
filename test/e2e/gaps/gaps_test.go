package gaps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// Invariant 1.
func TestACutOffLosesNothing(t *testing.T) {
	g := newGap(newEnv(t), "cut")
	o := g.Options(g.rules())
	o.Args = []string{lab.Alone}
	proxy := g.Proxy(o)
	h := g.Launch(o)
	g.begins(h)
	proxy.Cut()
	g.passes()
	require.NoError(t, proxy.Restore())
	g.closes(h)
}

func TestADeadConnectionIsNoticed(t *testing.T) {
	g := newGap(newEnv(t), "dead")
	o := g.Options(g.rules())
	o.Args = []string{lab.Alone}
	o.Env = []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=1", "HTTP2_PING_TIMEOUT_SECONDS=1"}
	proxy := g.Proxy(o)
	h := g.Launch(o)
	g.begins(h)
	proxy.Hold()
	g.passes()
	g.says(h, "client connection lost")
	require.NoError(t, proxy.Restore())
	g.closes(h)
}

func TestACutOffLeaderEndsAndItsSuccessorCatchesUp(t *testing.T) {
	g := newGap(newEnv(t), "lease")
	o := g.Options(g.rules())
	o.Args = []string{"--lease-duration", "13s"}
	proxy := g.Proxy(o)
	h := g.Launch(o)
	g.begins(h)
	delays := g.Delays()
	proxy.Hold()
	g.passes()
	require.Contains(t, lab.Ends(t, h), "lost the leader lease")
	lease := lab.Read(t, g.Admin.CoordinationV1().Leases(lab.Namespace).Get, "headwater")
	require.EqualValues(t, 13, *lease.Spec.LeaseDurationSeconds)
	endsBefore(g.Env, h, lease.Spec.RenewTime.Add(13*time.Second), delays)
	require.NoError(t, proxy.Restore())
	// It would run out by itself, later.
	require.NoError(t, g.Admin.CoordinationV1().Leases(lab.Namespace).Delete(t.Context(), "headwater", metav1.DeleteOptions{}))
	o.Name += "-again"
	g.closes(g.Launch(o))
}

// endsBefore checks that a leader that could not renew its lease ended before others may lead.
// Its log says when: this test may notice later.
func endsBefore(e *lab.Env, h *lab.Headwater, expires time.Time, delays *lab.Delays) {
	e.Helper()
	log, err := os.Stat(h.LogFile)
	require.NoError(e, err)
	ended := log.ModTime()
	// It gives up after two thirds of the lease. The last third is for what it stops.
	const third = 13 * time.Second / 3
	gaveUp := expires.Add(-third)
	e.Logf("it ended %s before its lease", expires.Sub(ended))
	if late := delays.Longest(gaveUp.Add(-time.Second), ended); !ended.Before(expires) && late > third/2 {
		e.Inconclusive("it ended %s after its lease, but writes were seen as late as %s", ended.Sub(expires), late)
	}
	require.True(e, ended.Before(expires), "another may lead by now")
}

func TestAnOutageOfTheAPIServerLosesNothing(t *testing.T) {
	t.Parallel() // on a cluster of its own
	c := cluster.ForTest(t, cluster.Options{Args: map[string][]string{cluster.APIServer: {"--etcd-compaction-interval=1s"}}})
	t.Run("after which resourceVersions have expired", func(t *testing.T) { expiry(&env{lab.On(t, c)}) })
	t.Run("in the middle of a fan-out", func(t *testing.T) { interruption(&env{lab.On(t, c)}) })
}

func expiry(e *env) {
	g := newGap(e, "expired")
	o := g.Options(g.rules())
	o.Args = []string{lab.Alone}
	proxy := g.Proxy(o)
	h := g.Launch(o)
	g.begins(h)
	// Were it cut off, it would try in vain, and then long not try again.
	proxy.Hold()
	namespaces := lab.List(g, g.Admin.CoreV1().Namespaces().List, metav1.ListOptions{})
	seen := namespaces.ResourceVersion // Headwater has seen nothing later
	g.passes()
	require.NoError(g, g.Cluster.RestartAPIServer(g.Context())) // it forgets what it had in memory
	g.Eventually(func(ctx context.Context) error { return g.expired(ctx, seen) })
	proxy.Cut()
	require.NoError(g, proxy.Restore())
	g.closes(h)
	g.relisted()
}

// relisted waits until Headwater has begun every watch again that it could not
// resume. The test's outcome does not need all of them.
func (g *gap) relisted() {
	g.Helper()
	var resumed, relisted map[string]bool
	g.Eventually(func(context.Context) error {
		resumed, relisted = g.watches()
		lacks := func(watched string) bool { return !relisted[watched] }
		return lab.ErrorIf(len(relisted) == 0 || slices.ContainsFunc(slices.Collect(maps.Keys(resumed)), lacks), "resumed: %v, listed again: %v", resumed, relisted)
	})
	if len(resumed) == 0 {
		g.Inconclusive("the API server took so long to start that Headwater gave up its watches before, and resumed none")
	}
}

// watches returns what Headwater has watched since the gap began: what it tried to
// resume, and what it listed again.
func (g *gap) watches() (resumed, relisted map[string]bool) {
	g.Helper()
	watches, err := g.Cluster.Since(g.Context(), g.mark, func(r cluster.Request) bool {
		return r.User == lab.ServiceAccount && r.Verb == "watch"
	})
	require.NoError(g, err)
	resumed, relisted = map[string]bool{}, map[string]bool{}
	for _, w := range watches {
		uri, err := url.Parse(w.URI)
		require.NoError(g, err)
		what := uri.Path + " " + uri.Query().Get("labelSelector")
		if uri.Query().Get("sendInitialEvents") == "true" {
			relisted[what] = true
		} else {
			resumed[what] = true
		}
	}
	return resumed, relisted
}

// expired checks that nobody can go on from resourceVersion, by watch or list.
func (g *gap) expired(ctx context.Context, resourceVersion string) error {
	core, second := g.Admin.CoreV1(), int64(1)
	exact := metav1.ListOptions{ResourceVersion: resourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	if _, err := core.Secrets(metav1.NamespaceAll).List(ctx, exact); !apierrors.IsResourceExpired(err) {
		return fmt.Errorf("a list from %s is not refused as expired (%w)", resourceVersion, err)
	}
	from := metav1.ListOptions{ResourceVersion: resourceVersion, TimeoutSeconds: &second}
	for name, start := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
		"namespaces": core.Namespaces().Watch,
		"secrets":    core.Secrets(metav1.NamespaceAll).Watch,
		"configmaps": core.ConfigMaps(metav1.NamespaceAll).Watch,
	} {
		watching, err := start(ctx, from)
		if err == nil {
			event := <-watching.ResultChan()
			watching.Stop()
			err = apierrors.FromObject(event.Object)
		}
		if !apierrors.IsResourceExpired(err) {
			return fmt.Errorf("a watch of %s from %s is not refused as expired (%w)", name, resourceVersion, err)
		}
	}
	return nil
}

const fanOut = 200

func interruption(e *env) {
	require.NoError(e, lab.EnsureNamespace(e.Context(), e.Admin, "fan-src", nil))
	for i := range fanOut {
		require.NoError(e, lab.EnsureNamespace(e.Context(), e.Admin, fmt.Sprintf("fan-%03d", i), nil))
	}
	e.Secret("fan-src", "shared", map[string]string{"k": "v1"})
	o := e.Options(lab.OneRule("fan"))
	o.Args = []string{lab.Alone, "--workers=2"} // few, so that the fan-out takes its time
	proxy := e.Proxy(o)
	h := e.Launch(o)
	uids := e.fannedOut("v1")
	failures := func() float64 {
		count, err := h.Metric(e.Context(), "headwater_sync_failures_total", map[string]string{"rule": "fan"})
		require.NoError(e, err)
		return count
	}
	for sentence, restart := range map[string]func() error{
		"by an upgrade": func() error { return e.Cluster.RestartAPIServer(e.Context()) },
		"by a crash": func() error {
			if err := e.Cluster.KillAPIServer(); err != nil {
				return err
			}
			return e.Cluster.StartAPIServer(e.Context())
		},
	} {
		e.Run(sentence, func(t *testing.T) {
			e.Settled(h)
			mark, before := e.Cluster.Mark(), failures()
			proxy.Slow(200 * time.Millisecond) // on any machine
			e.Edit("fan-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte(sentence) })
			e.Eventually(func(context.Context) error { return lab.ErrorIf(len(e.Writes(mark)) < fanOut/10, "hardly begun") })
			require.NoError(t, restart())
			proxy.Slow(0)
			require.Equal(t, uids, e.fannedOut(sentence), "a clone was recreated")
			require.Greater(t, failures(), before, "the fan-out was over before the API server was down")
			accepted := map[string]int{}
			for _, write := range e.Writes(mark) {
				require.Equal(t, "update", write.Verb)
				if write.Code < 300 {
					accepted[write.Namespace]++
				}
			}
			require.Equal(t, 1, slices.Max(slices.Collect(maps.Values(accepted))), "one write per clone")
		})
	}
}

// fannedOut waits until every clone holds value, and returns their UIDs.
func (e *env) fannedOut(value string) map[string]types.UID {
	e.Helper()
	var uids map[string]types.UID
	e.Eventually(func(context.Context) error {
		secrets, err := e.Admin.CoreV1().Secrets(metav1.NamespaceAll).List(e.Context(), metav1.ListOptions{FieldSelector: "metadata.name=shared"})
		if err != nil {
			return err
		}
		uids = map[string]types.UID{}
		for _, secret := range secrets.Items {
			if string(secret.Data["k"]) == value {
				uids[secret.Namespace] = secret.UID
			}
		}
		return lab.ErrorIf(len(uids) != fanOut+1, "%d of %d hold %q", len(uids), fanOut+1, value)
	})
	return uids
}

// says waits until the process has logged text.
func (g *gap) says(h *lab.Headwater, text string) {
	g.Helper()
	g.Eventually(func(context.Context) error {
		log, err := h.Log()
		return errors.Join(err, lab.ErrorIf(!strings.Contains(log, text), "it has not said %q", text))
	})
}
