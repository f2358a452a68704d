package sync

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestAMissingSourceIsNamedAsItWasWhenThePlaceWasLookedAt(t *testing.T) {
	rule := synctest.Rule(t, func(c *spec.Config) { c.OnSourceDeleted = spec.Delete })
	note := missingNote(rule, survey.MissingSource(rule.Source.Ref().String()))
	require.Equal(t, `rule "blog": its source Secret/platform/blogsecret does not exist; create it, or correct `+"`source`"+
		` in the configuration; existing clones are deleted while it does not exist, because onSourceDeleted is Delete`, note)
}
