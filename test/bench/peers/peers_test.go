package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }

// play has a controller of that name watched, and returns the rows.
func play(t *testing.T, o options) []string {
	t.Helper()
	c := cluster.Shared(t)
	o.clones, o.rounds, o.samples = 3, 1, 2
	require.NoError(t, o.choose())
	results := &measure.Table{Title: o.title("test")}
	require.NoError(t, perform(t.Context(), c.Config(), o, results))
	var text strings.Builder
	require.NoError(t, results.Print(&text))
	t.Log(text.String())

	admin, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	left, err := admin.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: runLabel})
	require.NoError(t, err)
	require.Empty(t, left.Items, "it leaves nothing behind")
	return strings.Split(strings.TrimSpace(text.String()), "\n")[3:] // after the title and the header
}

func TestWithoutAControllerNothingEverHappens(t *testing.T) {
	t.Parallel()
	rows := play(t, options{prefix: "nobody", within: 3 * time.Second})
	require.Len(t, rows, 5)
	for _, row := range rows {
		require.Contains(t, row, "never within 3s")
	}
	require.Contains(t, rows[0], "only 0 of 3 namespaces")
	require.Contains(t, rows[4], "0 of 3")
}

func TestHeadwaterIsTimedLikeAnyOther(t *testing.T) {
	t.Parallel()
	c, o := cluster.Shared(t), options{prefix: "any", name: "headwater", within: lab.Timeout}
	require.NoError(t, o.choose())
	require.NoError(t, lab.Install(t.Context(), c.Config(), "../../../deploy/rbac.yaml"))
	binary, err := filepath.Abs("../../../bin/headwater")
	require.NoError(t, err)
	run := lab.Options{Binary: binary, Dir: t.TempDir(), Config: filepath.Join(t.TempDir(), "config.yaml"), Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	require.NoError(t, os.WriteFile(run.Config, []byte(o.preset.setup), 0o600))
	require.NoError(t, c.KubeconfigFor(run.Kubeconfig, lab.ServiceAccount))
	headwater, err := lab.Start(run)
	require.NoError(t, err)
	t.Cleanup(headwater.Stop)
	require.NoError(t, headwater.Ready(t.Context()))

	rows := play(t, o)
	require.Len(t, rows, 5)
	for _, row := range rows {
		require.NotContains(t, row, "never")
		require.Contains(t, row, " ms")
	}
}
