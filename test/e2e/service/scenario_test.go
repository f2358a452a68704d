package service

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/scenario"
)

// The story that `make run` tells is true. Invariant 1: it kills Headwater in
// the middle, and the next start converges. Together with the side jobs it is what
// the permissions of the service account are measured by.
func TestMainJob(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{})
	e := lab.On(t, c)
	story, err := scenario.New(scenario.Options{
		Cluster: c,
		Binary:  lab.Binary(t),
		Config:  filepath.Join(lab.Root(t), "configs", "headwater.yaml"),
		RBAC:    filepath.Join(lab.Root(t), "deploy", "rbac.yaml"),
		Client:  e.Client,
	}, scenario.NewNarrator(t.Output(), false))
	require.NoError(t, err)
	t.Cleanup(story.Stop)
	require.NoError(t, story.Play(t.Context()), "log: %s", story.Log())
	story.Stop()
	e.ForgetConfiguration() // another installation follows
	sideJobs(&env{e})
	requireLeastPrivilege(t, c)
	logs, err := filepath.Glob(filepath.Join(c.Dir(), "headwater-*.log"))
	require.NoError(t, err)
	require.Greater(t, len(logs), 1, "it was started again")
	for _, name := range logs {
		log, err := os.ReadFile(name)
		require.NoError(t, err)
		lab.Told(filepath.Base(name), string(log))
	}
}
