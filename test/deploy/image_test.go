package deploy

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// build makes the binary in a folder of its own, of what the image is built from
// and as deploy/Dockerfile does, and returns its path.
func build(t *testing.T, folder string) string {
	t.Helper()
	const root = "../.."
	require.NoError(t, os.MkdirAll(folder, 0o755))
	for _, part := range []string{"cmd", "configs", "internal", "protect", "reload", "sync"} {
		require.NoError(t, os.CopyFS(filepath.Join(folder, part), os.DirFS(filepath.Join(root, part))))
	}
	for _, file := range []string{"Makefile", "go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), content, 0o600))
	}
	command := exec.CommandContext(t.Context(), "make", "build", "VERSION=v0.0.0", "COMMIT=0123456789abcdef")
	command.Dir, command.Env = folder, append(os.Environ(), "GOTOOLCHAIN=local", "GOFLAGS=-mod=readonly", "MAKEFLAGS=")
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	return filepath.Join(folder, "bin", "headwater")
}

// Builds of a release are identical in every folder. The binary needs nothing from
// the image, which has no dynamic linker.
func TestTheBinaryIsTheSameWhereverItIsBuilt(t *testing.T) {
	var sums []string
	for _, folder := range []string{"here", "some/where/else"} {
		binary := build(t, filepath.Join(t.TempDir(), folder))
		content, err := os.ReadFile(binary)
		require.NoError(t, err)
		sum := sha256.Sum256(content)
		sums = append(sums, hex.EncodeToString(sum[:]))

		linked, err := elf.Open(binary)
		require.NoError(t, err)
		for _, program := range linked.Progs {
			require.NotEqual(t, elf.PT_INTERP, program.Type, "not static")
		}
		require.NoError(t, linked.Close())
	}
	require.Equal(t, sums[0], sums[1])
}

// A tag can be moved to another image.
func TestTheBaseImagesAreNamedByDigest(t *testing.T) {
	content, err := os.ReadFile(deployDir + "/Dockerfile")
	require.NoError(t, err)
	bases := regexp.MustCompile(`(?m)^FROM (?:--\S+ )*(\S+)`).FindAllStringSubmatch(string(content), -1)
	require.Len(t, bases, 2)
	for _, base := range bases {
		require.Regexp(t, `^[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}$`, base[1])
	}
}
