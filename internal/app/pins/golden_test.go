package pins_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireGolden compares text with a file of testdata, or, with UPDATE=1, writes
// that file.
func requireGolden(t *testing.T, file, text string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	text = strings.TrimSpace(text) + "\n"
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text,
		"users see this change of %s; if it is meant: UPDATE=1 go test ./internal/app/pins", path)
}
