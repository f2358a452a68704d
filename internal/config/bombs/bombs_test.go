package bombs_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/config"
)

// bombs are texts that cost a lot for their size, of about n values or bytes.
var bombs = map[string]func(n int) string{
	"a list of texts where mappings belong": func(n int) string { return valid("rules: [" + strings.Repeat("a,", n-100) + "a]") },
	"a list at the top":                     func(n int) string { return "[" + strings.Repeat("a,", n-100) + "a]" },
	"empty mappings":                        func(n int) string { return valid("rules: [" + strings.Repeat("{},", n/2-100) + "{}]") },
	"lists in lists":                        func(n int) string { return valid("rules: " + strings.Repeat("[", n/8) + strings.Repeat("]", n/8)) },
	"unknown keys":                          func(n int) string { return valid(numbered(n/3, "k%d:\n")) },
	"unknown keys of a rule":                func(n int) string { return valid("rules:\n- name: a\n" + numbered(n/3, "  k%d:\n")) },
	"comments":                              func(n int) string { return valid("rules:\n" + strings.Repeat("# a\n- #\n", n/4)) },
	"a long value":                          func(n int) string { return valid("x: " + strings.Repeat("k", n*15)) },
	"a long key":                            func(n int) string { return valid("? " + strings.Repeat("k.", n*5) + "\n: {a: 1}") },
	"a long key above many": func(n int) string {
		return valid(strings.Repeat("k", 1000) + ": [" + strings.Repeat("1,", n-100) + "]")
	},
	"long keys in long keys": func(n int) string {
		return valid("x: " + strings.Repeat("{"+strings.Repeat("a", 1000)+": ", 60) + "[" + strings.Repeat("1,", n-300) + "]" + strings.Repeat("}", 60))
	},
	"anchors": func(n int) string { return valid("x: [" + strings.Repeat("&a a,", n-100) + "]") },
	"tags":    func(n int) string { return valid("x: [" + strings.Repeat("!a a,", n-100) + "]") },
	"aliases": func(n int) string {
		return valid("x: [&a " + strings.Repeat("k", n*5) + "," + strings.Repeat("*a,", n/2) + "]")
	},
	"aliased users": func(n int) string {
		return withRule("protect: {allow: {users: [&a " + strings.Repeat("k", n*5) + "," + strings.Repeat("*a,", n/2) + "]}}")
	},
	"users": func(n int) string {
		return withRule("protect: {allow: {users: [" + strings.Repeat("a,", n-100) + "]}}")
	},
	"labels": func(n int) string {
		return withRule("sync: {target: {labels: {" + numbered(n/2-100, "k%d: a,") + "}}}")
	},
	"rules that share their clones": func(n int) string {
		return valid("rules:\n" + numbered(n/30, "- {name: r%[1]d, source: {kind: Secret, namespace: p, name: s%[1]d}, sync: {target: {name: x}, namespaces: {include: [a%[1]d]}}}\n"))
	},
	"globs to exclude": func(n int) string {
		return withRule("sync: {namespaces: {include: [" + strings.Repeat("'a*b*',", n/2-100) + "x], exclude: [" + strings.Repeat("'c*b*',", n/2-100) + "x]}}")
	},
	"globs of many stars": func(n int) string {
		return withRule("sync: {namespaces: {include: ['" + strings.Repeat("a*", n*4) + "'], exclude: ['" + strings.Repeat("a*", n*4) + "b']}}")
	},
	"regular expressions": func(n int) string {
		return withRule("sync: {}\n  validate:\n" + strings.Repeat("  - {key: a, is: Regex, pattern: '"+strings.Repeat(`\pL`, 4)+"'}\n", n/60))
	},
	"schemas": func(n int) string {
		return withRule("sync: {}\n  validate:\n" + strings.Repeat("  - {key: a, schema: {type: string}}\n", n/10))
	},
	"receivers": func(n int) string { return valid("notify:\n" + strings.Repeat("- {url: 'http://a.b'}\n", n/6)) },
	"workloads": func(n int) string {
		return valid("reload:\n  workloads:\n" + numbered(n/10, "  - {group: a.b, version: v1, kind: K%[1]d, resource: ks%[1]d}\n"))
	},
	"namespaces of owners": func(n int) string {
		return valid("reload:\n  namespaces:\n" + strings.Repeat("  - {namespaces: {include: [a]}, objects: {include: [a]}}\n", n/16))
	},
}

func valid(lines string) string { return "apiVersion: headwater.dev/v1alpha1\nkind: Config\n" + lines }

func withRule(section string) string {
	return valid("rules:\n- name: a\n  source: {kind: Secret, namespace: p, name: a}\n  " + section)
}

func numbered(n int, format string) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, format, i)
	}
	return all.String()
}

// read does what a review of the configuration does.
func read(text []byte) error {
	parsed, err := config.ParseIn("own", "f.yaml", text)
	if err == nil {
		_, err = parsed.Compile("own")
	}
	return err
}

// most is about as many values as a configuration may have.
const most = 48_000

// The factor between the costs of two sizes shows what the cost grows with; it does not
// depend on the machine.
func TestTheCostOfAConfigurationGrowsWithItsSizeAlone(t *testing.T) {
	const larger, atMost = 8, 24 // in proportion to the square it would be 64
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			small, large := bomb(most/larger), bomb(most)
			bound := atMost * max(cpuOf(small), 5*time.Millisecond)
			cost := cpuOf(large)
			for tries := 0; cost > bound && tries < 8; tries++ { // the garbage collector and neighbours only add to it
				cost = min(cost, cpuOf(large))
			}
			require.LessOrEqual(t, cost, bound, "%d and %d bytes", len(small), len(large))
		})
	}
}

// cpuOf returns the least CPU time of some readings of text.
func cpuOf(text string) time.Duration {
	raw, least := []byte(text), time.Hour
	for range 2 {
		before := cpuTime()
		_ = read(raw)
		least = min(least, cpuTime()-before)
	}
	return least
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestAConfigurationNeedsLittleMemoryWhateverItHolds(t *testing.T) {
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			raw := []byte(bomb(most))
			require.LessOrEqual(t, allocated(func() { _ = read(raw) }), uint64(512<<20), "in total, of which most is garbage before the end")
		})
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestWhatIsTooMuchIsRefusedBeforeItIsParsed(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"too many values":          {valid("rules: [" + strings.Repeat("a,", 4_000_000) + "a]"), "f.yaml:1: is larger than 1048576 bytes; split it"},
		"too many on one line":     {valid("rules: [" + strings.Repeat("a,", 60_000) + "a]"), "f.yaml:3: has more than 50000 values and lines"},
		"too many lines":           {valid("rules:\n" + strings.Repeat("- a\n", 30_000)), "f.yaml:"},
		"too many lines of old":    {valid("rules: '" + strings.Repeat("\u0085", 60_000) + "'"), "f.yaml:"},
		"regular expressions":      {withRule("sync: {}\n  validate:\n" + strings.Repeat("  - {key: a, is: Regex, pattern: '"+strings.Repeat("a", 1000)+"'}\n", 20)), "regular expressions of this and the rules before it have more than 16384 bytes"},
		"patterns in schemas":      {withRule("sync: {}\n  validate:\n" + strings.Repeat("  - {key: a, schema: {items: [{pattern: '"+strings.Repeat("a", 1000)+"'}]}}\n", 20)), "more than 16384 bytes"},
		"a key":                    {valid(strings.Repeat("k", 1020) + ": 1\n? " + strings.Repeat("k", 1100) + "\n: 1"), "a key is longer than 1024 bytes; shorten it"},
		"aliases of a long text":   {withRule("protect: {allow: {users: [&a " + strings.Repeat("k", 200_000) + strings.Repeat(",*a", 1000) + "]}}"), "aliases repeat too much"},
		"names above many values":  {bombs["long keys in long keys"](most), "the keys are too long and nested too deeply"},
		"a list that is too large": {bombs["a list of texts where mappings belong"](200_000), "has more than 50000"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			raw := []byte(tc.text)
			spent := allocated(func() { err = read(raw) })
			require.ErrorContains(t, err, tc.want)
			require.Less(t, len(err.Error()), 120_000)
			if strings.Contains(tc.want, "larger") || strings.Contains(tc.want, "50000") {
				require.Less(t, spent, uint64(1<<20), "no parser saw it")
			}
		})
	}
}

func TestProblemsStopAtAHundred(t *testing.T) {
	for name, text := range map[string]string{
		"of the shape":   valid("rules: [" + strings.Repeat("a,", 1000) + "a]"),
		"unknown keys":   valid(numbered(1000, "k%d: 1\n")),
		"of the reader":  valid("x: [" + strings.Repeat("!a b,", 1000) + "]"),
		"of the meaning": valid("rules:\n" + numbered(1000, "- {name: r%[1]d, source: {kind: Secret, namespace: a, name: B}, sync: {}}\n")),
	} {
		t.Run(name, func(t *testing.T) {
			var found config.Problems
			require.ErrorAs(t, read([]byte(text)), &found)
			require.Len(t, found, 101)
			require.Equal(t, "there may be more problems; fix these first", found[100].Message)
			require.LessOrEqual(t, found[0].Line, 4)
		})
	}
}

// A parser's work shows in what it allocates, on any machine the same.
func FuzzWorkIsBoundedByTheSize(f *testing.F) {
	for _, bomb := range bombs {
		f.Add([]byte(bomb(400)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		const each, once = 64 << 10, 8 << 20 // a byte of a regular expression costs most
		require.LessOrEqual(t, allocated(func() { _ = read(raw) }), uint64(each*len(raw)+once))
	})
}
