package figures

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// measured is what looks like a measurement: a ratio, or a time or an amount of
// memory in a unit that nobody configures anything in.
var measured = regexp.MustCompile(`ratio \d|\b\d[\d,.]* (ms|µs|MiB)\b`)

// given are limits of Kubernetes, and not measured.
var given = []string{"1.5 MiB", "1 MiB"}

func TestTheDocumentsStateTheFiguresOfTheFile(t *testing.T) {
	file, err := Read(root)
	require.NoError(t, err)
	for _, name := range Documents {
		content, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		fresh, outside, err := Rewrite(string(content), file)
		require.NoError(t, err, name)
		require.Equal(t, fresh, string(content), "%s: go run ./test/figures/cmd/figures -write", name)
		require.Empty(t, unmarked(outside), "%s states figures outside of the marks", name)
	}
}

func unmarked(text string) []string {
	for _, one := range given {
		text = strings.ReplaceAll(text, one, "")
	}
	return measured.FindAllString(text, -1)
}

// A document that is not written from the file repeats no figure of it.
func TestNoOtherDocumentStatesAFigureOfTheFile(t *testing.T) {
	file, err := Read(root)
	require.NoError(t, err)
	stated := map[string]bool{}
	for _, run := range file.Runs {
		for _, row := range run.Rows {
			if text := in(row.Unit, row.Value.Median); row.Value.Median >= 10 && measured.MatchString(text) {
				stated[text] = true
			}
		}
	}
	require.NotEmpty(t, stated)
	for _, name := range otherDocuments(t) {
		content, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		for text := range stated {
			require.NotContains(t, string(content), text, name)
		}
	}
}

// otherDocuments are those that are read by users and not in Documents.
func otherDocuments(t *testing.T) []string {
	t.Helper()
	var others []string
	for _, pattern := range []string{"*.md", "configs/*.md", "deploy/*.md", "deploy/design/*.md", "deploy/guides/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range paths {
			name, err := filepath.Rel(root, path)
			require.NoError(t, err)
			if !slices.Contains(Documents, filepath.ToSlash(name)) {
				others = append(others, name)
			}
		}
	}
	require.Greater(t, len(others), 20)
	return others
}

func TestAFigureOutsideOfTheMarksIsFound(t *testing.T) {
	for text, want := range map[string]int{
		"it took 151 ms, ratio 1.10":             2,
		"85 MiB is what clones take":             1,
		"each takes 0.7 ms":                      1,
		"no larger than 1 MiB, waits 15s, 512Mi": 0,
	} {
		require.Len(t, unmarked(text), want, text)
	}
}

func TestARunReplacesWhatStandsInTheDocuments(t *testing.T) {
	folder := t.TempDir()
	for _, name := range append([]string{Name}, Documents...) {
		content, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), content, 0o644))
	}
	like := Run{Command: `make bench BENCH="-n 10"`, Date: "2026-12-24", Commit: "abc", Machine: "1 CPU"}
	require.NoError(t, Update(folder, ByKind(like, []Row{
		{Key: "fan-out/clones=10", Unit: "ms", Value: Values{Median: 7}, Floor: &Values{Median: 8}, Ratio: &Ratio{0.9, 0.5, 1.1}},
		{Key: "fan-out/clones=10/reads", Unit: "reads"},
		{Key: "memory/resident/clones=10/unrelated=20", Unit: "MiB", Value: Values{Median: 33}},
	})))
	performance, err := os.ReadFile(filepath.Join(folder, "deploy/PERFORMANCE.md"))
	require.NoError(t, err)
	require.Contains(t, string(performance), "| source edited, until the last of 10 clones is written | 7 ms | 8 ms | 0.90 (0.50 to 1.10) | `make bench BENCH=\"-n 10\"` | 24 December 2026 |")
	require.Contains(t, string(performance), "| resident memory with 10 clones and 20 other Secrets | 33 MiB |")
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
	require.NoError(t, err)
	require.Contains(t, string(readme), "the last of 10 clones in 7 ms. A bare client that writes the same objects takes 8 ms.")
	require.Contains(t, string(readme), "With 10 clones and 20 other Secrets, Headwater uses 33 MiB of memory.")
	values, err := os.ReadFile(filepath.Join(folder, "deploy/helm/headwater/values.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(values), "# With 10 clones and 20 other Secrets, Headwater uses 33 MiB of memory.")
	file, err := Read(folder)
	require.NoError(t, err)
	require.Equal(t, "abc", file.Runs["fan-out"].Commit)
	require.NotEqual(t, "abc", file.Runs["refresh"].Commit, "what was not measured stays")
}

func TestOtherControllersStandNextToHeadwater(t *testing.T) {
	like := Run{Command: "make bench-peers", Date: "2026-12-24", Commit: "abc"}
	file := File{Runs: ByPeer(Itself, like, []Row{
		{Key: "fan-out/clones=1000", Unit: "ms", Samples: 3, Value: Values{Median: 900}, Floor: &Values{Median: 800}, Ratio: &Ratio{1.1, 0.9, 1.2}},
		{Key: "fan-out/clones=20", Unit: "ms", Samples: 1, Value: Values{Median: 9}, Floor: &Values{Median: 8}, Ratio: &Ratio{1.1, 1.1, 1.1}},
		{Key: "new-namespace", Unit: "ms", Samples: 5, Value: Values{Median: 10}, Floor: &Values{Median: 8}},
	})}
	like.Version = "v2"
	maps.Copy(file.Runs, ByPeer("another", like, []Row{
		{Key: "heal/edited", Unit: "ms", Outcome: "never within 1m0s"},
		{Key: "fan-out/clones=1000", Unit: "ms", Samples: 1, Value: Values{Median: 200_000}, Floor: &Values{Median: 800}, Ratio: &Ratio{250, 250, 250}},
	}))
	text, err := peers(file)
	require.NoError(t, err)
	const end = " | `make bench-peers` | 24 December 2026 |"
	require.Equal(t, []string{
		"| source edited, until the last of 20 clones is written | headwater | abc | 9 ms | 8 ms | 1.10" + end,
		"| source edited, until the last of 1,000 clones is written | headwater | abc | 900 ms | 800 ms | 1.10 (0.90 to 1.20)" + end,
		"| source edited, until the last of 1,000 clones is written | another | v2 | 200 s | 800 ms | 250" + end,
		"| namespace created, until it has its clone | headwater | abc | 10 ms | 8 ms | 1.25" + end,
		"| clone edited, until it is restored | another | v2 | never within 1m0s | - | -" + end,
	}, strings.Split(text, "\n")[2:])
}

func TestMarksComeInPairsAndHaveAName(t *testing.T) {
	file, err := Read(root)
	require.NoError(t, err)
	for text, want := range map[string]string{
		"<!-- figures: rollouts; make figures writes them -->\n": "lost the mark of their end",
		"# figures: nothing; make figures writes them\n":         "there are no figures nothing",
	} {
		_, _, err := Rewrite(text, file)
		require.ErrorContains(t, err, want)
	}
	_, _, err = Rewrite("# figures: rollouts; make figures writes them\n# end of figures\n", File{})
	require.ErrorContains(t, err, "no run rollouts")
}

func TestACommandIsWrittenAsSomebodyTypesIt(t *testing.T) {
	require.Equal(t, "make cost", command("make cost", "COST", []string{"-figures", "."}))
	require.Equal(t, `make bench BENCH="-only fan-out"`, command("make bench", "BENCH", []string{"-strict=false", "-only", "fan-out", "-figures", "."}))
}
