package service

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// A watch of an API server that went back to an earlier state waits for versions that come
// much later: what runs on follows nothing, and looks fine.
func TestARestoredEtcdEndsTheProcessSoThatTheNextOneReadsEverything(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{})
	e := lab.On(t, c)
	e.Namespaces("restored-src", "restored-a")
	e.Secret("restored-src", "shared", map[string]string{"k": "saved"})
	o := e.Options(lab.OneRule("restored"))
	o.Args = []string{"--lease-duration", "10m"} // no lease is lost while the API server is away
	leads := e.Launch(o)
	require.NoError(t, leads.Ready(t.Context()))
	e.HasClone("restored-a", "shared", map[string]string{"k": "saved"})
	standby := e.Options(lab.OneRule("restored"))
	standby.Args = o.Args
	waits := e.Launch(standby)
	require.NoError(t, waits.Ready(t.Context()))

	require.NoError(t, c.SaveEtcd(t.Context()))
	e.SetKey("restored-src", "shared", "k", "lost")
	e.HasClone("restored-a", "shared", map[string]string{"k": "lost"})
	standbyReads(e)
	require.NoError(t, c.RestoreEtcd(t.Context()))
	for _, h := range []*lab.Headwater{leads, waits} {
		require.Contains(t, lab.Ends(t, h), "went back to an earlier state, as after a restore of etcd")
	}

	e.StartAlone(lab.OneRule("restored"))
	e.HasClone("restored-a", "shared", map[string]string{"k": "saved"})
	e.SetKey("restored-src", "shared", "k", "after")
	e.HasClone("restored-a", "shared", map[string]string{"k": "after"})
}

// standbyReads waits until the replica that does not lead has read the Lease as it is from now
// on. The leader only updates it, unless that fails.
func standbyReads(e *lab.Env) {
	mark := e.Cluster.Mark()
	e.Eventually(func(ctx context.Context) error {
		asked, err := e.Cluster.Since(ctx, mark, func(r cluster.Request) bool {
			return r.Resource == "leases" && r.Namespace == lab.Namespace && r.Code == http.StatusOK
		})
		renewed := slices.IndexFunc(asked, func(r cluster.Request) bool { return r.Verb == "update" })
		if err != nil || renewed < 0 || !slices.ContainsFunc(asked, func(r cluster.Request) bool { return r.Verb == "get" && r.Time.After(asked[renewed].Done) }) {
			return cmp.Or(err, errors.New("the standby has not read the Lease again"))
		}
		return nil
	})
}
