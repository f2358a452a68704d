package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// What finds methods by names that only a run knows, as text/template does, has
// the linker keep every exported method of every type: the generated clients and
// types of Kubernetes have so many that the program would be half as large
// again.
func TestTheLinkerMayLeaveOutMethodsThatNobodyCalls(t *testing.T) {
	build := exec.Command("go", "build", "-ldflags=-dumpdep", "-o", filepath.Join(t.TempDir(), "headwater"), ".")
	// Like a release: with cgo, cli-runtime can load Go plugins. What `make build` compiled is in Go's cache.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	reached, err := build.CombinedOutput()
	require.NoError(t, err, string(reached[:min(len(reached), 1000)]))
	require.Contains(t, string(reached), "main.main -> ", "what reaches what was not told")
	require.Empty(t, regexp.MustCompile(`-> \S+ <ReflectMethod>`).FindAllString(string(reached), 3))
}
