package survey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/internal/validate"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/spec"
)

func TestEachVersionOfASourceIsCheckedOnce(t *testing.T) {
	reader := &Reader{verdicts: lru.New(maxVerdicts), Now: time.Now}
	checks, err := validate.Compile(validate.Checks{{Key: "user", Is: validate.Regex, Pattern: "[a-z]+"}})
	require.NoError(t, err)
	source := synctest.Source(t, map[string]string{"user": "BLOG"})
	source.ResourceVersion = "1"
	const wrong = `key "user" does not match its pattern`
	require.Equal(t, wrong, reader.Judge(checks, source).String())
	source.Content.Data["user"] = []byte("blog")
	require.Equal(t, wrong, reader.Judge(checks, source).String(), "the same version again")
	source.ResourceVersion = "2"
	require.Empty(t, reader.Judge(checks, source).String())
	stricter, err := validate.Compile(validate.Checks{{Key: "user", Is: validate.JSON}})
	require.NoError(t, err)
	require.Equal(t, `key "user" is not valid JSON (line 1)`, reader.Judge(stricter, source).String(), "the same version after a change of the rule")
	require.Empty(t, reader.Judge(nil, source).String())
}

func TestTheContentCountsAsOfWhenItWasWritten(t *testing.T) {
	source := synctest.Source(t, nil)
	source.CreationTimestamp = metav1.NewTime(time.Unix(100, 0))
	require.Equal(t, int64(100), writtenAt(source).Unix())
	at := metav1.NewTime(time.Unix(200, 0))
	source.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}}
	require.Equal(t, int64(200), writtenAt(source).Unix())
}

func TestNoRequestDeliversWhatIsNotValid(t *testing.T) {
	checks, err := validate.Compile(validate.Checks{{Key: "user", Is: validate.Regex, Pattern: "[a-z]+"}})
	require.NoError(t, err)
	rule := synctest.Rule(t, func(c *spec.Config) {
		c.Delivery = &stages.Delivery{Stages: []stages.Stage{{Name: "canary", Percent: 10}}}
	})
	rule.Validator = checks
	revision := func(number int, verdict revisions.Verdict, user string) *revisions.Revision {
		return &revisions.Revision{Number: number, Verdict: verdict, Content: object.Content{Data: map[string][]byte{"user": []byte(user)}}}
	}
	history := revisions.NewHistory([]*revisions.Revision{
		revision(1, revisions.Delivered, "OLD"), revision(2, revisions.Delivered, "blog"), revision(3, revisions.Rejected, "BLOG"),
	})
	for sentence, test := range map[string]struct {
		request delivery.Request
		refused string
	}{
		"a retry":                               {delivery.Request{Verb: delivery.Retry, Revision: 3}, `revision 3 is not valid: key "user" does not match its pattern`},
		"a rollback to what became invalid":     {delivery.Request{Verb: delivery.Rollback, To: 1}, `revision 1 is not valid`},
		"a rollback to what is valid is done":   {delivery.Request{Verb: delivery.Rollback, To: 2}, ""},
		"what cannot be done has its own error": {delivery.Request{Verb: delivery.Retry, Revision: 1}, "nothing to retry"},
	} {
		t.Run(sentence, func(t *testing.T) {
			changed, err := (&Reader{}).Apply(rule, history, history[2], test.request, time.Unix(1000, 0))
			if test.refused != "" {
				require.ErrorContains(t, err, test.refused)
				require.Empty(t, changed)
				return
			}
			require.NoError(t, err)
			require.Len(t, changed, 1)
			require.Equal(t, 3, changed[0].PinnedOver, "the source has revision 3")
		})
	}
}
