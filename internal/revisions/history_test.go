package revisions_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/revisions"
)

// Each revision was recorded as many seconds after 1970 as its number.
func TestSinceWhenClonesHadOnlyWhatWasDelivered(t *testing.T) {
	const delivered, rejected, underWay = revisions.Delivered, revisions.Rejected, revisions.Delivering
	for sentence, test := range map[string]struct {
		first    int
		verdicts []revisions.Verdict
		want     time.Time
	}{
		"since ever":                          {1, []revisions.Verdict{delivered, delivered, underWay}, time.Unix(0, 0)},
		"the first is the only one":           {1, []revisions.Verdict{underWay}, time.Unix(0, 0)},
		"since the one after the first kept":  {3, []revisions.Verdict{delivered, delivered, underWay}, time.Unix(4, 0)},
		"since it replaced what was rejected": {1, []revisions.Verdict{delivered, rejected, delivered, delivered, underWay}, time.Unix(4, 0)},
		"the one before was rejected":         {1, []revisions.Verdict{delivered, rejected, underWay}, time.Time{}},
		"the one before is not kept":          {4, []revisions.Verdict{underWay}, time.Time{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var history revisions.History
			for i, verdict := range test.verdicts {
				history = append(history, &revisions.Revision{Number: test.first + i, Verdict: verdict, Recorded: time.Unix(int64(test.first+i), 0)})
			}
			require.Equal(t, test.want, history.DeliveredSince(history.Newest().Number))
		})
	}
}
