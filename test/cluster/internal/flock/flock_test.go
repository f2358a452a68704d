//go:build unix

package flock

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneHolderAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "lock")
	requireHeld(t, path, false)

	first, err := Acquire(t.Context(), path, func() { t.Error("nobody to wait for") })
	require.NoError(t, err)
	requireHeld(t, path, true)
	require.NoError(t, first.Write("a long first text"))
	require.NoError(t, first.Write("second"))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "second", string(content))

	ctx, cancel := context.WithCancel(t.Context())
	_, err = Acquire(ctx, path, cancel)
	require.ErrorIs(t, err, context.Canceled)

	acquired := make(chan error)
	second, err := Acquire(t.Context(), path, func() { go func() { acquired <- first.Release() }() })
	require.NoError(t, err)
	require.NoError(t, <-acquired)
	require.NoError(t, second.Release())
	requireHeld(t, path, false)
	require.FileExists(t, path)
}

func requireHeld(t *testing.T, path string, want bool) {
	t.Helper()
	held, err := Held(path)
	require.NoError(t, err)
	require.Equal(t, want, held)
}
