package revisions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestUntilWhenAnEarlierRevisionMayBeToBlame(t *testing.T) {
	source := object.Ref{Kind: object.Secret, Namespace: "platform", Name: "shared"}
	start := time.Unix(1_800_000_000, 0)
	now := start.Add(time.Hour)
	revision := func(number int, verdict string) *Revision {
		one := &Revision{id: revisionID{"blog", source, number}, kind: source.Kind, verdict: verdict}
		if !one.underWay() {
			one.endedAt = start.Add(time.Duration(number) * time.Minute)
		}
		return one
	}
	another := revision(7, held)
	another.id.rule = "other"
	for sentence, test := range map[string]struct {
		recorded []*Revision
		want     time.Time
	}{
		"it was delivered after all":                {[]*Revision{revision(6, delivered)}, time.Time{}},
		"it was rejected":                           {[]*Revision{revision(6, "Rejected")}, start.Add(6 * time.Minute)},
		"the next one was not delivered, either":    {[]*Revision{revision(7, "Superseded"), revision(6, "Rejected")}, start.Add(7 * time.Minute)},
		"the next one was delivered":                {[]*Revision{revision(6, "Rejected"), revision(7, delivered)}, start.Add(6 * time.Minute)},
		"it is not known yet that it is superseded": {[]*Revision{revision(6, held)}, now},
		"it is not recorded any more":               {[]*Revision{revision(7, delivered)}, now},
		"older, newer and other ones do not matter": {[]*Revision{revision(5, "Rejected"), revision(6, delivered), revision(8, delivering), another}, time.Time{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, test.want, undeliveredUntil(test.recorded, 6, revisionID{"blog", source, 8}, now))
		})
	}
}
