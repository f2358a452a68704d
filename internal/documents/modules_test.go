package documents

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var requirement = regexp.MustCompile(`(?m)^\s+(\S+) (v\S+)`)

// Go compiles a package once more for each version of anything below it. On a machine that has
// compiled nothing yet, that is minutes. The control plane and the tools have versions of their own.
func TestModulesThatShareADependencyAskForTheSameVersion(t *testing.T) {
	ours := map[string]string{}
	for _, found := range requirement.FindAllStringSubmatch(read(t, "go.mod"), -1) {
		ours[found[1]] = found[2]
	}
	require.Greater(t, len(ours), 50)
	for _, module := range []string{"cel", "deploy", "gotest", "kwok", "page"} {
		for _, found := range requirement.FindAllStringSubmatch(read(t, "test/"+module+"/go.mod"), -1) {
			if version, shared := ours[found[1]]; shared {
				require.Equal(t, version, found[2], "%s in test/%s/go.mod: go -C test/%[2]s get %[1]s@%[3]s", found[1], module, version)
			}
		}
	}
}
