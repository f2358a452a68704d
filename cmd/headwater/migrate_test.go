package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/configs"
)

const pushed = `apiVersion: v1
kind: Secret
metadata:
  namespace: platform
  name: shared
  annotations: {replicator.v1.mittwald.de/replicate-to: "PLACES"}
`

// migrates runs the command on files and stdin.
func migrates(t *testing.T, stdin string, args ...string) (file, summary string, err error) {
	t.Helper()
	var out, told bytes.Buffer
	root := rootCommand("headwater")
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&told)
	root.SetArgs(append([]string{"migrate"}, args...))
	err = root.ExecuteContext(t.Context())
	return out.String(), told.String(), err
}

func TestMigrateReadsFilesDirectoriesAndTheStandardInput(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "deeper"), 0o700))
	for name, places := range map[string]string{"a.yaml": "team-a", "deeper/b.yml": "team-b", "notes.txt": "team-c"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(pushed, "PLACES", places)), 0o600))
	}
	file, summary, err := migrates(t, strings.ReplaceAll(pushed, "PLACES", "team-d"), "-f", dir, "-f", "-", "-f", filepath.Join(dir, "notes.txt"))
	require.NoError(t, err)
	require.Contains(t, summary, "carried over: 1, partly: 0, not: 0\n")
	for _, name := range []string{"team-a", "team-b", "team-c", "team-d"} {
		require.Contains(t, file, name)
	}
}

func TestMigrateSaysByItsErrorWhatIsLeftToDo(t *testing.T) {
	_, summary, err := migrates(t, strings.ReplaceAll(pushed, "PLACES", "(?!x).*"), "-f", "-")
	require.ErrorIs(t, err, errNotCarried)
	require.Contains(t, summary, "not carried over: Secret/platform/shared: no namespace is left to copy into")
	_, _, err = migrates(t, "apiVersion: v1\nkind: Service\n", "-f", "-")
	require.ErrorIs(t, err, errNothingFound)
	_, _, err = migrates(t, "", "-f", filepath.Join(t.TempDir(), "nowhere"))
	require.ErrorContains(t, err, "nowhere")
}

func TestMigrateReadsTheRestOfADirectoryWithAFileThatIsBroken(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "a.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("a: b: c # kyverno.io\n"), 0o600))
	_, summary, err := migrates(t, "", "-f", dir)
	require.ErrorIs(t, err, errNothingFound)
	require.Contains(t, summary, broken+":1: it is not YAML")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.yaml"), []byte(strings.ReplaceAll(pushed, "PLACES", "team-b")), 0o600))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "c.yaml")))
	file, summary, err := migrates(t, "", "-f", dir)
	require.ErrorIs(t, err, errNotCarried)
	require.Contains(t, file, "team-b")
	require.Contains(t, file, "# Could not be read:\n# - "+broken+":1: it is not YAML")
	require.Contains(t, summary, broken+":1: it is not YAML")
	require.Contains(t, summary, filepath.Join(dir, "c.yaml")+": open ")
}

func TestEveryMigratedFileIsOneThatCheckPasses(t *testing.T) {
	samples, err := filepath.Glob("../../internal/migrate/testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, samples)
	schema, _, _ := strings.Cut(string(configs.Sample()), "\n")
	for _, sample := range samples {
		t.Run(filepath.Base(sample), func(t *testing.T) {
			file, _, _ := migrates(t, "", "-f", sample)
			require.True(t, strings.HasPrefix(file, schema+"\n"), "editors find the schema by the first line")
			written := filepath.Join(t.TempDir(), "headwater.yaml")
			require.NoError(t, os.WriteFile(written, []byte(file), 0o600))
			root := rootCommand("headwater")
			root.SetOut(io.Discard)
			root.SetArgs([]string{"check", written})
			require.NoError(t, root.ExecuteContext(t.Context()), file)
		})
	}
}
