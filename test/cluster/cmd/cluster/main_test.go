//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
)

// runCommand makes the test binary the command itself, as up needs it to be.
const runCommand = "HEADWATER_TEST_CLUSTER_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(runCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), runCommand+"=yes")
	output, err := cmd.CombinedOutput()
	require.NotContains(t, string(output), "goroutine ")
	return string(output), err
}

func TestUpStatusDown(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane: not with -short")
	}
	folder := t.TempDir()
	do := func(name string) (string, error) { return command(t, "-in", folder, name) }
	t.Cleanup(func() { _, _ = do("down") })
	kubeconfig := filepath.Join(folder, ".cluster", "kubeconfig")

	output, err := do("status")
	require.Error(t, err)
	require.Equal(t, "cluster: no cluster is running: start one with up\n", output)
	output, err = do("down")
	require.NoError(t, err, output)

	output, err = do("up")
	require.NoError(t, err, output)
	require.Contains(t, output, "export KUBECONFIG="+kubeconfig)
	pid := readPID(t, folder)
	output, err = do("up")
	require.NoError(t, err, output)
	require.Equal(t, pid, readPID(t, folder), "the one that runs is kept")
	output, err = do("status")
	require.NoError(t, err, output)
	require.Contains(t, output, "Kubernetes v1.")
	l, err := newLocal(folder)
	require.NoError(t, err)
	config, err := l.config()
	require.NoError(t, err)

	output, err = do("down")
	require.NoError(t, err, output)
	_, err = net.Dial("tcp", strings.TrimPrefix(config.Host, "https://"))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoFileExists(t, kubeconfig)
	require.NoDirExists(t, filepath.Join(folder, ".cluster", "run"))
}

func TestUpAfterACrash(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane: not with -short")
	}
	folder := t.TempDir()
	t.Cleanup(func() { _, _ = command(t, "-in", folder, "down") })
	output, err := command(t, "-in", folder, "up")
	require.NoError(t, err, output)
	crashed := readPID(t, folder)
	require.NoError(t, syscall.Kill(crashed, syscall.SIGKILL))
	l, err := newLocal(folder)
	require.NoError(t, err)
	err = wait.PollUntilContextTimeout(t.Context(), pollInterval, time.Minute, true, l.ended)
	require.NoError(t, err)

	output, err = command(t, "-in", folder, "status")
	require.ErrorContains(t, err, "exit status 1", output)
	output, err = command(t, "-in", folder, "up")
	require.NoError(t, err, output)
	require.NotEqual(t, crashed, readPID(t, folder))
}

func TestMistakesAreTold(t *testing.T) {
	for _, args := range [][]string{{}, {"sideways"}, {"up", "down"}} {
		output, err := command(t, args...)
		require.Error(t, err)
		require.Contains(t, output, usage)
	}
	output, err := command(t, "build", "toaster")
	require.Error(t, err)
	require.Contains(t, output, "build toaster: there is no such component")
	cmd := exec.Command(os.Args[0], "up")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), runCommand+"=yes")
	outside, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(outside), "cluster: no checkout of headwater here")
}

func readPID(t *testing.T, folder string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, ".cluster", "pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	require.NoError(t, err)
	return pid
}
