package documents

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// read returns the text of a file, by its path from the root of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(content)
}

// section returns what stands below a heading of the second level.
func section(t *testing.T, document, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(document, "\n## "+heading+"\n")
	require.True(t, found, "no heading %q", heading)
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// files calls visit with each file of this extension, by its path from the root
// of the repository. Hidden folders and vendored files are left out.
func files(t *testing.T, extension string, visit func(name, text string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "vendor" || entry.Name() == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != extension {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(name), read(t, name))
		return nil
	}))
}
