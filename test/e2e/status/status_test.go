// Package status holds the end-to-end tests of RuleStatuses.
package status

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/internal/rulestatus/keeper"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }

type env struct {
	*lab.Env

	client dynamic.ResourceInterface
}

// newEnv installs the kind. A status that an earlier test left would be taken for one of this.
func newEnv(t *testing.T) *env {
	t.Helper()
	base := lab.Parallel(t)
	e := &env{base, base.RuleStatuses()}
	e.Eventually(func(ctx context.Context) error {
		return e.client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	return e
}

// becomes waits until the RuleStatus is as accept wants it.
func (e *env) becomes(rule string, accept func(rulestatus.Status) bool) (status rulestatus.RuleStatus) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		var err error
		if status, err = lab.RuleStatus(ctx, e.client, rule); err != nil {
			return err
		}
		return lab.ErrorIf(!accept(status.Status), "not as expected: %+v", status.Status)
	})
	return status
}

func ready(reason string) func(rulestatus.Status) bool {
	return func(s rulestatus.Status) bool {
		condition := s.Condition(rulestatus.Ready)
		return condition != nil && condition.Reason == reason
	}
}

// writesSince returns Headwater's writes to the RuleStatus of a rule since mark. What an earlier
// test left may be deleted at any time.
func (e *env) writesSince(mark cluster.Mark, rule string) []cluster.Request {
	e.Helper()
	requests, err := e.Cluster.Since(e.Context(), mark, func(r cluster.Request) bool {
		return r.User == lab.ServiceAccount && r.Resource == rulestatus.Resource && r.Name == rule && r.IsWrite()
	})
	require.NoError(e, err)
	return requests
}

func TestARuleHasAStatusThatIsWrittenOnlyWhenItChanges(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("status-src", "status-a", "status-b")
	e.Secret("status-src", "shared", map[string]string{"k": "v"})
	h := e.StartAlone(lab.OneRule("status"))
	first := e.becomes("status", ready("Ready"))
	require.Equal(t, 2, first.Status.Clones.Current)
	require.NotEmpty(t, first.Status.ConfigurationRevision)

	h.Stop()
	began, mark := time.Now(), e.Cluster.Mark()
	h = e.StartAlone(lab.OneRule("status"))
	require.NoError(t, h.Idle(t.Context()))
	e.Namespace("status-more")
	e.becomes("status", func(s rulestatus.Status) bool { return s.Clones.Current == 3 })
	require.LessOrEqual(t, len(e.writesSince(mark, "status")), 2+int(time.Since(began)/keeper.Interval), "nothing for the restart; the new namespace before and after it got its clone")
}

func TestAStatusIsWrittenOncePerIntervalAtMost(t *testing.T) {
	e := newEnv(t)
	const namespaces, intervals = 40, 3
	e.Namespace("busy-src")
	for i := range namespaces {
		e.Namespace(fmt.Sprintf("busy-%d", i))
	}
	e.Secret("busy-src", "shared", map[string]string{"k": "v"})
	h := e.StartAlone(lab.OneRule("busy"))
	e.becomes("busy", ready("Ready"))
	began, mark := time.Now(), e.Cluster.Mark()
	edits := 0
	for until := time.Now().Add(intervals * keeper.Interval); time.Now().Before(until); edits++ {
		value := fmt.Sprint("v", edits)
		e.Edit("busy-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte(value) })
		e.HasClone("busy-0", "shared", map[string]string{"k": value})
	}
	e.Settled(h)
	written, passed := e.writesSince(mark, "busy"), time.Since(began)
	t.Logf("%d edits of a source with %d clones in %s: %d writes of the RuleStatus", edits, namespaces, passed, len(written))
	require.LessOrEqual(t, len(written), 2+int(passed/keeper.Interval), "after %d edits", edits)
}

func TestWithoutTheKindHeadwaterWorks(t *testing.T) {
	e := newEnv(t)
	definitions := e.Dynamic().Resource(lab.Definitions())
	name := rulestatus.GVR.GroupResource().String()
	require.NoError(t, definitions.Delete(t.Context(), name, metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error {
		_, err := definitions.Get(ctx, name, metav1.GetOptions{})
		return lab.Gone(err)
	})
	e.StageOf("bare", map[string]string{"k": "v"})
	h := e.StartAlone(lab.OneRule("bare"))
	e.HasClone("bare-a", "shared", map[string]string{"k": "v"})
	e.Eventually(func(context.Context) error { return says(h, "the kind RuleStatus is not installed") })

	user := e.onCall("bare-user")
	for _, command := range [][]string{{"status"}, {"history", "bare"}, {"pause", "bare"}, {"approve", "bare"}} {
		_, problem, exit := e.Command(user, command...)
		require.Equal(t, 1, exit)
		require.Contains(t, problem, "RuleStatuses is not installed; apply deploy/crd.yaml", "%s", command)
	}

	e.RuleStatuses()
	e.becomes("bare", ready("Ready"))
}

// says returns nil if the log contains text exactly once.
func says(h *lab.Headwater, text string) error {
	log, err := h.Log()
	if count := strings.Count(log, text); err == nil && count != 1 {
		return fmt.Errorf("%q is in the log %d times", text, count)
	}
	return err
}
