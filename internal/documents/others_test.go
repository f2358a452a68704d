package documents

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheThreatModelNamesTestsThatExist(t *testing.T) {
	tests := testComments(t)
	checked := 0
	for _, name := range quoted.FindAllStringSubmatch(read(t, "deploy/THREATS.md"), -1) {
		if testName.MatchString(name[1]) {
			checked++
			require.True(t, has(tests, name[1]), "there is no test %s", name[1])
		}
	}
	require.Positive(t, checked)
}

// The page about libraries says of every one that is required directly what it
// is for.
func TestEveryLibraryIsAccountedFor(t *testing.T) {
	var told []string
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`[^|]*`"+`) \|`).FindAllStringSubmatch(read(t, "deploy/design/libraries.md"), -1) {
		for _, library := range quoted.FindAllStringSubmatch(row[1], -1) {
			told = append(told, library[1])
		}
	}
	var required []string
	for _, line := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(read(t, "go.mod"), -1) {
		required = append(required, line[1])
	}
	require.NotEmpty(t, required)
	require.ElementsMatch(t, required, told)
}

// Labels, annotations, Events and metrics that a document names are those of the code.
func TestTheDocumentsNameWhatExists(t *testing.T) {
	code := map[string]bool{}
	files(t, ".go", func(name, text string) {
		if !strings.HasSuffix(name, "_test.go") {
			for _, found := range regexp.MustCompile(`(?:Domain \+ "|headwater\.dev/|Prefix \+ ")([a-z-]+)`).FindAllStringSubmatch(text, -1) {
				code[found[1]] = true
			}
		}
	})
	reasons := read(t, "internal/app/pins/testdata/events.txt")
	metrics := read(t, "deploy/METRICS.md")
	checked := map[string]int{}
	var wrong []string
	files(t, ".md", func(name, text string) {
		for _, found := range regexp.MustCompile(`headwater\.dev/([a-z][a-z-]*[a-z])\b`).FindAllStringSubmatch(text, -1) {
			if !code[found[1]] && found[1] != "relaod" { // an example of a misspelling
				wrong = append(wrong, name+": "+found[0])
			}
			checked["marks"]++
		}
		for _, found := range regexp.MustCompile("Events? `([A-Z][A-Za-z]+)`").FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)\b` + found[1] + `\b`).MatchString(reasons) {
				wrong = append(wrong, name+": Event "+found[1])
			}
			checked["Events"]++
		}
		for _, found := range regexp.MustCompile(`\bheadwater_[a-z_]+[a-z]`).FindAllString(text, -1) {
			if !strings.Contains(metrics, "`"+strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(found, "_bucket"), "_count"), "_sum")+"`") {
				wrong = append(wrong, name+": "+found)
			}
			checked["metrics"]++
		}
	})
	require.Empty(t, wrong)
	require.Len(t, checked, 3)
}
