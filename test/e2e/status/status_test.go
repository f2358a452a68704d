// Package status holds the end-to-end tests of RuleStatuses.
package status

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/internal/rulestatus/keeper"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }

type env struct {
	*e2e.Env

	client dynamic.ResourceInterface
}

// newEnv installs the kind.
func newEnv(t *testing.T) *env {
	t.Helper()
	base := e2e.New(t)
	e := &env{base, base.Dynamic().Resource(rulestatus.GVR)}
	e.install()
	return e
}

func (e *env) install() {
	e.Helper()
	require.NoError(e, harness.Apply(e.Context(), e.Cluster.Config(), filepath.Join(e2e.Root(e.T), "deploy", "crd.yaml")))
}

// becomes waits until the RuleStatus is as accept wants it.
func (e *env) becomes(rule string, accept func(rulestatus.Status) bool) (status rulestatus.RuleStatus) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		found, err := e.client.Get(ctx, rule, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status = rulestatus.RuleStatus{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &status); err != nil {
			return err
		}
		if !accept(status.Status) {
			return fmt.Errorf("not as expected: %+v", status.Status)
		}
		return nil
	})
	return status
}

func ready(reason string) func(rulestatus.Status) bool {
	return func(s rulestatus.Status) bool {
		condition := s.Condition(rulestatus.Ready)
		return condition != nil && condition.Reason == reason
	}
}

// writesSince returns Headwater's writes to RuleStatuses since mark.
func (e *env) writesSince(mark cluster.Mark) []cluster.Request {
	e.Helper()
	requests, err := e.Cluster.Since(e.Context(), mark, func(r cluster.Request) bool {
		return r.User == harness.ServiceAccount && r.Resource == rulestatus.Resource && r.IsWrite()
	})
	require.NoError(e, err)
	return requests
}

func TestARuleHasAStatusThatIsWrittenOnlyWhenItChanges(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"status-src", "status-a", "status-b"} {
		e.Namespace(name)
	}
	e.Secret("status-src", "shared", map[string]string{"k": "v"})
	h := e.StartAlone(e2e.OneRule("status"))
	first := e.becomes("status", ready("Ready"))
	require.Equal(t, 2, first.Status.Clones.Current)
	require.NotEmpty(t, first.Status.ConfigurationRevision)

	h.Stop()
	mark := e.Cluster.Mark()
	h = e.StartAlone(e2e.OneRule("status"))
	require.NoError(t, h.Idle(t.Context()))
	e.Namespace("status-more")
	e.becomes("status", func(s rulestatus.Status) bool { return s.Clones.Current == 3 })
	require.LessOrEqual(t, len(e.writesSince(mark)), 2, "nothing for the restart; the new namespace before and after it got its clone")
}

func TestAStatusIsWrittenOncePerIntervalAtMost(t *testing.T) {
	e := newEnv(t)
	const namespaces, intervals = 40, 3
	e.Namespace("busy-src")
	for i := range namespaces {
		e.Namespace(fmt.Sprintf("busy-%d", i))
	}
	e.Secret("busy-src", "shared", map[string]string{"k": "v"})
	h := e.StartAlone(e2e.OneRule("busy"))
	e.becomes("busy", ready("Ready"))
	mark := e.Cluster.Mark()
	edits := 0
	for until := time.Now().Add(intervals * keeper.Interval); time.Now().Before(until); edits++ {
		value := fmt.Sprint("v", edits)
		e.Edit("busy-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte(value) })
		e.HasClone("busy-0", "shared", map[string]string{"k": value})
	}
	e.Settled(h)
	written := e.writesSince(mark)
	// What an earlier test left may be deleted at any time.
	written = slices.DeleteFunc(written, func(r cluster.Request) bool { return r.Name != "busy" })
	for i := range written[:len(written)-1] {
		apart := written[i+1].Time.Sub(written[i].Time)
		require.Greater(t, apart, keeper.Interval-time.Second, "write %d and the next, after %d edits", i, edits)
	}
	events, err := e.Cluster.Since(t.Context(), mark, func(r cluster.Request) bool {
		return r.User == harness.ServiceAccount && r.Resource == "events" && r.IsWrite()
	})
	require.NoError(t, err)
	t.Logf("%d edits of a source with %d clones: %d writes of the RuleStatus, %d of Events", edits, namespaces, len(written), len(events))
	require.LessOrEqual(t, len(written), len(events))
}

func TestWithoutTheKindHeadwaterWorks(t *testing.T) {
	e := newEnv(t)
	definitions := e.Dynamic().Resource(e2e.Definitions())
	name := rulestatus.GVR.GroupResource().String()
	require.NoError(t, definitions.Delete(t.Context(), name, metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error {
		_, err := definitions.Get(ctx, name, metav1.GetOptions{})
		return harness.Gone(err)
	})
	e.Namespace("bare-src")
	e.Namespace("bare-a")
	e.Secret("bare-src", "shared", map[string]string{"k": "v"})
	h := e.StartAlone(e2e.OneRule("bare"))
	e.HasClone("bare-a", "shared", map[string]string{"k": "v"})
	e.Eventually(func(context.Context) error { return says(h, "the kind RuleStatus is not installed") })

	e.install()
	e.becomes("bare", ready("Ready"))
}

// says returns nil if the log contains text exactly once.
func says(h *harness.Headwater, text string) error {
	log, err := h.Log()
	if count := strings.Count(log, text); err == nil && count != 1 {
		return fmt.Errorf("%q is in the log %d times", text, count)
	}
	return err
}
