package survey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/headwater-k8s/headwater/internal/validate"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
)

func TestEachVersionOfASourceIsCheckedOnce(t *testing.T) {
	reader := &Reader{verdicts: lru.New(maxVerdicts)}
	checks, err := validate.Compile(validate.Checks{{Key: "user", Is: validate.Regex, Pattern: "[a-z]+"}})
	require.NoError(t, err)
	source := synctest.Source(t, map[string]string{"user": "BLOG"})
	source.ResourceVersion = "1"
	const wrong = `key "user" does not match its pattern`
	require.Equal(t, wrong, reader.Invalid(checks, source))
	source.Content.Data["user"] = []byte("blog")
	require.Equal(t, wrong, reader.Invalid(checks, source), "the same version again")
	source.ResourceVersion = "2"
	require.Empty(t, reader.Invalid(checks, source))
	stricter, err := validate.Compile(validate.Checks{{Key: "user", Is: validate.JSON}})
	require.NoError(t, err)
	require.Equal(t, `key "user" is not valid JSON (line 1)`, reader.Invalid(stricter, source), "the same version after a change of the rule")
	require.Empty(t, reader.Invalid(nil, source))
}

func TestTheContentCountsAsOfWhenItWasWritten(t *testing.T) {
	source := synctest.Source(t, nil)
	source.CreationTimestamp = metav1.NewTime(time.Unix(100, 0))
	require.Equal(t, int64(100), writtenAt(source).Unix())
	at := metav1.NewTime(time.Unix(200, 0))
	source.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}}
	require.Equal(t, int64(200), writtenAt(source).Unix())
}
