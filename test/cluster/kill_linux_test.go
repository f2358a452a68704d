package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
)

func TestNothingOutlivesAKilledProcess(t *testing.T) {
	t.Parallel()
	skipShort(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), runChild+"="+filepath.Join(t.TempDir(), "cluster"))
	child.Stderr = t.Output()
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	pids := map[string]int{}
	require.NoError(t, json.NewDecoder(stdout).Decode(&pids), "the child tells its components when it is ready")
	require.Len(t, pids, 4)
	for name, pid := range pids {
		require.True(t, alive(t, pid), name)
	}

	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())

	for name, pid := range pids {
		err := wait.PollUntilContextTimeout(t.Context(), pollInterval, time.Minute, true,
			func(context.Context) (bool, error) { return !alive(t, pid), nil })
		require.NoError(t, err, "%s (%d) still runs", name, pid)
	}
}

// alive does not count a process that ended and that nobody has waited for yet.
func alive(t *testing.T, pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	require.NoError(t, err)
	_, state, found := bytes.Cut(stat, []byte(") "))
	require.True(t, found)
	return state[0] != 'Z'
}
