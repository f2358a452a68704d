package revisions

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestARecreatedCloneIsJudgedSinceItsFirstWrite(t *testing.T) {
	source := object.Ref{Kind: object.Secret, Namespace: "platform", Name: "shared"}
	ref := object.Ref{Kind: object.Secret, Namespace: "team-0", Name: "shared"}
	now := time.Unix(1_800_000_000, 0)
	id := func(number int) revisionID { return revisionID{rule: "blog", source: source, number: number} }
	version := 0
	clone := func() *object.Digested {
		version++
		return object.NewDigested(metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, ResourceVersion: strconv.Itoa(version)}, object.Common{Kind: ref.Kind})
	}
	for sentence, test := range map[string]struct {
		since func(*clones)
		of    revisionID
		kept  bool
	}{
		"repaired":                           {func(*clones) {}, id(7), true},
		"deleted, and recreated":             {func(c *clones) { c.recreatable(ref) }, id(7), true},
		"deleted twice":                      {func(c *clones) { c.recreatable(ref); c.recreatable(ref) }, id(7), true},
		"recreated from another revision":    {func(c *clones) { c.recreatable(ref) }, id(8), false},
		"written from another one meanwhile": {func(c *clones) { c.remove(ref) }, id(7), false},
		"after the end of the delivery":      {func(c *clones) { c.end(id(7)); c.begin(&Revision{id: id(7)}) }, id(7), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			var c clones
			c.clear()
			for _, number := range []int{7, 8} {
				require.True(t, c.begin(&Revision{id: id(number)}))
			}
			require.True(t, c.add(clone(), id(7), now))
			c.look(ref, tracked{id: id(7), lookedAt: now, writtenAt: now, failedBefore: []string{"Deployment/web"}})
			test.since(&c)
			require.True(t, c.add(clone(), test.of, now))
			one, known := c.get(ref)
			require.True(t, known)
			require.Equal(t, test.of, one.id)
			require.Equal(t, strconv.Itoa(version), one.version)
			require.Equal(t, test.kept, one.writtenAt.Equal(now))
			require.Equal(t, test.kept, len(one.failedBefore) > 0)
		})
	}
}
