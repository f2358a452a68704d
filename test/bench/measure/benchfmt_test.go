package measure

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The grammar is that of the proposal "Go Benchmark Data Format", as
// golang.org/x/perf/benchfmt reads it: configuration lines, and results that are
// a name, a number of iterations and pairs of a value and a unit.
var (
	configLine = regexp.MustCompile(`^[a-z][^ \tA-Z]*: .+$`)
	resultLine = regexp.MustCompile(`^Benchmark([A-Z][^ ]*)-([0-9]+) ([0-9]+)((?: [0-9.]+ [^ ]+)+)$`)
)

// parsed is one result line.
type parsed struct {
	n      int
	values map[string]float64
}

func parseBenchmarks(t *testing.T, text string) (config map[string]string, results map[string][]parsed) {
	t.Helper()
	config, results = map[string]string{}, map[string][]parsed{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if configLine.MatchString(line) {
			key, value, _ := strings.Cut(line, ": ")
			config[key] = value
			continue
		}
		parts := resultLine.FindStringSubmatch(line)
		require.NotNil(t, parts, line)
		require.Equal(t, strconv.Itoa(runtime.GOMAXPROCS(0)), parts[2])
		n, err := strconv.Atoi(parts[3])
		require.NoError(t, err)
		require.Positive(t, n)
		one := parsed{n, map[string]float64{}}
		fields := strings.Fields(parts[4])
		for i := 0; i < len(fields); i += 2 {
			one.values[fields[i+1]], err = strconv.ParseFloat(fields[i], 64)
			require.NoError(t, err)
		}
		results[parts[1]] = append(results[parts[1]], one)
	}
	return config, results
}

func TestTheRoundsAreToldInTheBenchmarkFormat(t *testing.T) {
	results := &Table{Of: "Headwater"}
	results.Ratio(Name{"fan-out/clones=10", "fan-out"}, fives(3e6, 4e6), fives(2e6, 4e6), 1.25)
	results.Count(Name{"memory", "memory"}, 42, 100, MiB)
	results.Number(Name{"failed-for", "failed for"}, 1.5, MS)
	results.Add(Row{What: "not measured", Value: "never"})
	var latencies []time.Duration
	for i := range 100 {
		latencies = append(latencies, time.Duration(i+1))
	}
	results.Latency(Name{"heal/deleted", "deleted"}, latencies, latencies[:7], time.Second)
	file := filepath.Join(t.TempDir(), "out.txt")
	require.NoError(t, results.Report(nil, &strings.Builder{}, file, "example.com/bench"))
	text, err := os.ReadFile(file)
	require.NoError(t, err)

	config, lines := parseBenchmarks(t, string(text))
	require.Equal(t, runtime.GOOS, config["goos"])
	require.Equal(t, runtime.GOARCH, config["goarch"])
	require.Equal(t, "example.com/bench", config["pkg"])
	require.Equal(t, []parsed{
		{1, map[string]float64{"ns/op": 3e6, "ratio": 1.5}}, {1, map[string]float64{"ns/op": 4e6, "ratio": 1}},
	}, lines["Headwater/fan-out/clones=10"], "a line for each round")
	require.Equal(t, []parsed{{1, map[string]float64{"ns/op": 2e6}}, {1, map[string]float64{"ns/op": 4e6}}}, lines["Floor/fan-out/clones=10"])
	require.Equal(t, []parsed{{1, map[string]float64{"B": 42 << 20}}}, lines["Headwater/memory"])
	require.Equal(t, []parsed{{1, map[string]float64{"ns": 1.5e6}}}, lines["Headwater/failed-for"])
	require.Len(t, lines["Headwater/heal/deleted"], batches)
	require.Equal(t, parsed{10, map[string]float64{"ns/op": 5, "p50-ns": 5, "p99-ns": 10}}, lines["Headwater/heal/deleted"][0])
	require.Len(t, lines["Floor/heal/deleted"], 7, "no more lines than samples")
	require.Len(t, lines, 6)
}

func TestWhatWentWrongIsToldBesideWhatWasMeasured(t *testing.T) {
	results := &Table{}
	results.Count(Name{What: "requests"}, 1, 1, Plain("requests"))
	var out strings.Builder
	err := results.Report(os.ErrDeadlineExceeded, &out, filepath.Join(t.TempDir(), "no", "such", "folder"), "")
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Contains(t, out.String(), "requests")
}
