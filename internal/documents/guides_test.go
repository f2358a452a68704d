package documents

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A rule that was ready before is ready until Headwater sees a change, so no recipe waits for
// Ready before it waits for what the change made.
func TestNoRecipeWaitsForABareReady(t *testing.T) {
	block := regexp.MustCompile("(?s)```.*?```")
	about := regexp.MustCompile(`jsonpath='\{\.status\.(configurationRevision|sources\.first\[0\]\.resourceVersion|delivery\.revision)\}'=`)
	found := 0
	for _, guide := range []string{"wait-for-a-rule.md", "argocd.md", "flux.md", "safe-delivery.md"} {
		for _, recipe := range block.FindAllString(read(t, filepath.Join("deploy", "guides", guide)), -1) {
			before, _, waits := strings.Cut(recipe, "--for=condition=Ready rulestatus/")
			if waits {
				found++
				require.Regexp(t, about, before, "%s: %s", guide, recipe)
			}
		}
	}
	require.GreaterOrEqual(t, found, 3)
}
