package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"`)
	// What GitHub leaves out of a heading when it makes the anchor.
	unanchored = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every link from one document to another leads to a file that is there, and to a heading that it has.
func TestTheDocumentsLinkToWhatIsThere(t *testing.T) {
	documents := documentsOf(t, filepath.Dir(deployDir))
	links, broken := 0, []string{}
	for from, text := range documents {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target := match[1] + match[2]
			if strings.Contains(target, "://") {
				continue
			}
			links++
			if !leads(documents, from, target) {
				broken = append(broken, from+" links to "+target)
			}
		}
	}
	require.Positive(t, links)
	require.Empty(t, broken)
}

// kubectl describe shows no Events of a Secret; kubectl events --for does.
func TestNobodyIsSentToDescribeForEvents(t *testing.T) {
	root := filepath.Dir(deployDir)
	misleading := regexp.MustCompile(`(?i)describe\s+(secret|configmap|\$\{)`)
	checked := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && path != root && strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir
			}
			return err
		}
		if !slices.Contains([]string{".md", ".js", ".txt", ".html"}, filepath.Ext(path)) {
			return nil
		}
		checked++
		text, err := os.ReadFile(path)
		require.NotRegexp(t, misleading, string(text), path)
		return err
	}))
	require.Greater(t, checked, 10)
}

func leads(documents map[string]string, from, target string) bool {
	file, anchor, _ := strings.Cut(target, "#")
	to := from
	if file != "" {
		to = filepath.Join(filepath.Dir(from), file)
	}
	_, err := os.Stat(to)
	return err == nil && (anchor == "" || slices.Contains(anchors(documents[to]), anchor))
}

// documentsOf returns the text of each document of the repository, without its code, by path.
func documentsOf(t *testing.T, root string) map[string]string {
	t.Helper()
	documents := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		documents[path] = fenced.ReplaceAllString(string(text), "")
		return err
	}))
	return documents
}

func anchors(text string) []string {
	var all []string
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		words := unanchored.ReplaceAllString(strings.ToLower(match[1]), "")
		all = append(all, strings.ReplaceAll(words, " ", "-"))
	}
	return all
}
