package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/sync/plan"
)

func TestWhatADryRunPrintsIsReadBack(t *testing.T) {
	want := plan.Revisions{object.Secret: "123", object.ConfigMap: "45"}
	require.Equal(t, "Secret=123,ConfigMap=45", formatAsOf(want))
	got, err := parseAsOf(formatAsOf(want))
	require.NoError(t, err)
	require.Equal(t, want, got)
	none, err := parseAsOf("")
	require.NoError(t, err)
	require.Nil(t, none)
	for _, text := range []string{"123", "Secret", "Secret=", "Pod=1", "Secret=1,"} {
		_, err := parseAsOf(text)
		require.ErrorContains(t, err, "is not what a dry run prints", text)
	}
}

func TestLeftoversAreNamedBeforeAnythingIsDone(t *testing.T) {
	left := Leftovers{Rule: "old", Fate: plan.PruneClones, AsOf: "Secret=9", Skipped: []string{"Secret/x/shared"}}
	for i := range 7 {
		left.Clones = append(left.Clones, fmt.Sprintf("Secret/team-%d/shared", i))
	}
	const names = ": 7 clones of rule old, which is no longer in the configuration\n  Secret/team-0/shared\n  Secret/team-1/shared\n" +
		"  Secret/team-2/shared\n  Secret/team-3/shared\n  Secret/team-4/shared\n  and 2 more; -o json names all\n" +
		"left alone, since changed meanwhile: Secret/x/shared\n"
	require.Equal(t, "to be deleted"+names+"\nIs that meant? Type yes: ", left.Question())
	shown := func(l Leftovers) string {
		var out strings.Builder
		l.Table(output.Options{}.Writer(&out))
		return out.String()
	}
	require.Equal(t, "deleted"+names, shown(left))
	left.DryRun = true
	require.Equal(t, "would be deleted"+names+"to do just this, and nothing to a clone that is changed from now on: --as-of Secret=9\n", shown(left))
	left = Leftovers{Rule: "old", Fate: plan.ReleaseClones, Clones: left.Clones[:1]}
	require.Equal(t, "released: 1 clone of rule old, which is no longer in the configuration\n  Secret/team-0/shared\n", shown(left))
}
