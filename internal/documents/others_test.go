package documents

import (
	"regexp"
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
