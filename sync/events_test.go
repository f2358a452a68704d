package sync

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestAMissingSourceIsNamedAsItWasWhenThePlaceWasLookedAt(t *testing.T) {
	rule := testRule(t, func(c *spec.Config) { c.OnSourceDeleted = spec.Delete })
	note := missingNote(rule, survey.MissingSource(rule.Source.Ref().String()))
	require.Equal(t, `rule "blog": its source Secret/platform/blogsecret does not exist; create it, or correct `+"`source`"+
		` in the configuration; existing clones are deleted while it does not exist, because onSourceDeleted is Delete`, note)
}

func TestTheLongestFailuresAreNamedFirst(t *testing.T) {
	now, targets, f := time.Unix(1000, 0), places(0, 3), progress.Failures{}
	f.Add(targets[2], "blog", errors.New("quota"), now)
	f.Add(targets[0], "blog", errors.New("quota"), now.Add(time.Second))
	f.Add(targets[1], "blog", errors.New("quota"), now.Add(time.Second))
	f.Add(targets[2], "blog", errors.New("quota again"), now.Add(time.Minute))
	require.Equal(t, targets[2:], f.First(1))
	require.Len(t, f.First(9), 3)
}
