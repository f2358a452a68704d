//go:build release

package deploy

import (
	"bufio"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Behind a tag, because it compiles everything again, for arm64.
func TestAReleaseHasBothPlatformsTheChartAndItsNotes(t *testing.T) {
	folder := t.TempDir()
	out, err := runMake(t, "release-files", "RELEASE="+folder, "VERSION=v9.8.7", "COMMIT=0123456789abcdef")
	require.NoError(t, err, out)
	for name, machine := range map[string]elf.Machine{"headwater-linux-amd64": elf.EM_X86_64, "headwater-linux-arm64": elf.EM_AARCH64} {
		binary, err := elf.Open(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Equal(t, machine, binary.Machine, name)
		require.NoError(t, binary.Close())
	}
	sums := checksums(t, folder)
	requirePlugin(t, folder, sums)

	content, err := os.ReadFile(filepath.Join(folder, "NOTES.md"))
	require.NoError(t, err)
	notes := string(content)
	for _, line := range []string{
		"helm install headwater oci://registry.example.com/owner/charts/headwater --version 9.8.7 \\",
		"--set image.repository=registry.example.com/owner/name --set image.digest=sha256:1111 --values values.yaml",
		"cosign verify registry.example.com/owner/name@sha256:1111 \\",
		"cosign verify registry.example.com/owner/charts/headwater@sha256:2222 \\",
		"--certificate-identity https://github.com/owner/name/.github/workflows/release.yaml@refs/tags/v9.8.7 \\",
		"gh attestation verify oci://registry.example.com/owner/name@sha256:1111 --repo owner/name",
		"gh attestation verify headwater-linux-amd64 --repo owner/name",
		"kubectl krew install --manifest-url=https://github.com/owner/name/releases/download/v9.8.7/krew.yaml",
		"- **sync** copies a source into every selected namespace, and repairs its clones.", // of the changelog
	} {
		require.Contains(t, notes, line)
	}
}

// checksums returns the sums in SHA256SUMS, which lists every file but itself, the notes
// and the manifest that contains sums.
func checksums(t *testing.T, folder string) (of map[string]string) {
	t.Helper()
	sums, err := os.Open(filepath.Join(folder, "SHA256SUMS"))
	require.NoError(t, err)
	defer func() { require.NoError(t, sums.Close()) }()
	of = map[string]string{}
	for lines := bufio.NewScanner(sums); lines.Scan(); {
		sum, name, found := strings.Cut(lines.Text(), "  ")
		require.True(t, found, lines.Text())
		content, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		actual := sha256.Sum256(content)
		require.Equal(t, hex.EncodeToString(actual[:]), sum, name)
		of[name] = sum
	}
	require.ElementsMatch(t, []string{
		"headwater-0.1.0.tgz", "headwater-linux-amd64", "headwater-linux-arm64", "headwater-man.tar.gz",
		"kubectl-headwater-linux-amd64.tar.gz", "kubectl-headwater-linux-arm64.tar.gz",
	}, slices.Collect(maps.Keys(of)))
	return of
}

// requirePlugin requires a manifest with which Krew installs kubectl-headwater.
func requirePlugin(t *testing.T, folder string, sums map[string]string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, "krew.yaml"))
	require.NoError(t, err)
	var manifest struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version, ShortDescription, Description string
			Platforms                              []struct {
				URI, SHA256, Bin string
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(content, &manifest))
	require.Equal(t, "headwater", manifest.Metadata.Name)
	require.Equal(t, "v9.8.7", manifest.Spec.Version)
	require.LessOrEqual(t, len(manifest.Spec.ShortDescription), 50, "Krew's limit")
	require.Len(t, manifest.Spec.Platforms, 2)
	for _, platform := range manifest.Spec.Platforms {
		archive := "kubectl-headwater-" + platform.Selector.MatchLabels["os"] + "-" + platform.Selector.MatchLabels["arch"] + ".tar.gz"
		require.Equal(t, "https://github.com/owner/name/releases/download/v9.8.7/"+archive, platform.URI)
		require.Equal(t, sums[archive], platform.SHA256)
		out, err := exec.CommandContext(t.Context(), "tar", "-tzf", filepath.Join(folder, archive)).Output()
		require.NoError(t, err)
		require.Equal(t, []string{"LICENSE", platform.Bin}, strings.Fields(string(out)))
	}
}
