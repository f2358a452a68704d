package documents

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxFiles bounds the product files of one folder, so that its name still says what is
// in it.
const maxFiles = 12

func TestNoFolderHoldsMoreThanADozenProductFiles(t *testing.T) {
	counts := map[string]int{}
	files(t, ".go", func(name, _ string) {
		if folder := path.Dir(name); isProduct(folder) && !strings.HasSuffix(name, "_test.go") {
			counts[folder]++
		}
	})
	require.Greater(t, len(counts), 30, "the folders were not found")
	for folder, count := range counts {
		require.LessOrEqual(t, count, maxFiles, "%s has %d files: make a package of what belongs together", folder, count)
	}
}
