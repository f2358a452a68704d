package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// Invariant 2, with what persists: conflicts, and a rule without a source.
func TestARestartWithNothingChangedStoresNothing(t *testing.T) {
	const places = 5
	e := newEnv(t)
	e.Secret(e.Namespace("again-src"), "shared", map[string]string{"k": "v"})
	for i := range places {
		namespace := e.Namespace(fmt.Sprintf("again-%d", i))
		e.Secret(namespace, "shared", map[string]string{"k": "theirs"})
	}
	rules := lab.OneRule("again") + `
- name: again-lost
  source: {kind: Secret, namespace: again-src, name: lost}
  sync: {namespaces: {include: [again-0]}}
`
	h := e.StartAlone(rules)
	reported := func() {
		for i := range places {
			e.HasEvent(fmt.Sprintf("again-%d", i), "shared", "Conflict")
		}
		e.HasEvent("again-src", "lost", "SourceMissing")
	}
	reported()
	e.Settled(h)
	h.Kill()

	mark := e.Cluster.Mark()
	h = e.StartAlone(rules)
	e.Eventually(func(ctx context.Context) error {
		refused, err := e.Cluster.Since(ctx, mark, func(r cluster.Request) bool {
			return ours(r) && r.Resource == "events" && r.Code == http.StatusConflict
		})
		return errors.Join(err, lab.ErrorIf(len(refused) < places+1, "%d Events were found to exist", len(refused)))
	})
	e.SettledFor(h, lab.Settle) // Events are written apart from its queues
	stored, err := e.Cluster.Since(t.Context(), mark, func(r cluster.Request) bool {
		return ours(r) && r.Code < http.StatusMultipleChoices && r.Resource != "leases" && r.Resource != "selfsubjectaccessreviews" &&
			r.Resource != "subjectaccessreviews" && r.Resource != "selfsubjectreviews"
	})
	require.NoError(t, err)
	require.Empty(t, stored)
}

func ours(r cluster.Request) bool { return r.User == lab.ServiceAccount && r.IsWrite() }
