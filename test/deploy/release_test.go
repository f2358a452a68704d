package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	require.Len(t, files, 4)
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
