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
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const workflowsDir = "../../.github/workflows"

// runMake runs a target of the Makefile as a workflow does.
func runMake(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "-C", "../.."}, args...)...)
	command.Env = append(os.Environ(), "MAKEFLAGS=", "HELM_CONFIG_HOME="+t.TempDir(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir(),
		"REPOSITORY=owner/name", "IMAGE=registry.example.com/owner/name", "CHART=registry.example.com/owner/charts/headwater",
		"IMAGE_DIGEST=sha256:1111", "CHART_DIGEST=sha256:2222")
	out, err := command.CombinedOutput()
	return string(out), err
}

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

func TestAReleaseHasTheVersionOfTheChart(t *testing.T) {
	content, err := os.ReadFile(chartDir + "/Chart.yaml")
	require.NoError(t, err)
	var chart struct{ Version, AppVersion string }
	require.NoError(t, yaml.Unmarshal(content, &chart))
	require.Equal(t, chart.Version, chart.AppVersion)
	out, err := runMake(t, "release-check", "VERSION=v"+chart.Version)
	require.NoError(t, err, out)
	out, err = runMake(t, "release-check", "VERSION=v9.8.7")
	require.Error(t, err)
	require.Contains(t, out, "set version and appVersion to 9.8.7")
}

// A tag of an action can be moved to other code; a commit cannot. A job has only the
// permissions that it names.
func TestWorkflowsPinActionsAndNamePermissions(t *testing.T) {
	files, err := filepath.Glob(workflowsDir + "/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 3)
	pinned := regexp.MustCompile(`uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+`)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Len(t, pinned.FindAllString(string(content), -1), strings.Count(string(content), "uses:"), file)
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions    map[string]string
				TimeoutMinutes int `json:"timeout-minutes"`
			}
		}
		require.NoError(t, yaml.Unmarshal(content, &workflow))
		require.NotNil(t, workflow.Permissions, file)
		require.Empty(t, workflow.Permissions, file)
		for name, job := range workflow.Jobs {
			require.NotEmpty(t, job.Permissions, "%s: %s", file, name)
			require.Positive(t, job.TimeoutMinutes, "%s: %s", file, name)
			if job.Permissions["contents"] == "write" {
				require.Len(t, job.Permissions, 1, "%s: %s may change the repository, and so may do nothing else", file, name)
			}
		}
	}
}

// Each target and script that a workflow runs exists, so that it can be run here.
func TestWorkflowsRunWhatAnybodyCanRun(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	files, err := filepath.Glob(workflowsDir + "/*.yaml")
	require.NoError(t, err)
	ran := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, step := range regexp.MustCompile(`run: (make|\.ci/)(\S*) ?([\w-]*)`).FindAllStringSubmatch(string(content), -1) {
			ran++
			if step[1] == "make" {
				require.Regexp(t, `(?m)^`+step[3]+`:`, string(makefile), file)
				continue
			}
			found, err := os.Stat("../../.ci/" + step[2])
			require.NoError(t, err, file)
			require.NotZero(t, found.Mode()&0o100, "%s is not executable", step[2])
		}
	}
	require.Greater(t, ran, 6)
}
