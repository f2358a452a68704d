package gather

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
)

func TestWhenDataBecameWhatItIs(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	read := func(at time.Time, keys ...string) *object.Digested {
		o := object.NewDigested(metav1.ObjectMeta{}, object.Common{})
		o.ChangedAt = at
		for _, key := range keys {
			name, value, _ := strings.Cut(key, "=")
			o.Digests = append(o.Digests, object.KeyDigest{Key: name, Sum: digest.Sum{0: value[0]}})
		}
		return o
	}
	for sentence, test := range map[string]struct {
		before, now *object.Digested
		want        time.Time
	}{
		"what is read first is as old as the API server says": {nil, read(early, "a=1"), early},
		"a changed value is":                  {read(early, "a=1"), read(late, "a=2"), late},
		"an added key is":                     {read(early, "a=1"), read(late, "a=1", "b=1"), late},
		"a changed value beside a lost key":   {read(early, "a=1", "b=1"), read(late, "a=2"), late},
		"of a lost key nobody knows":          {read(early, "a=1", "b=1"), read(early, "a=1"), time.Time{}},
		"nor of the last one":                 {read(early, "a=1"), read(early), time.Time{}},
		"nor later, while nothing else comes": {read(time.Time{}, "a=1"), read(early, "a=1"), time.Time{}},
		"the same data written again is younger: it may have been other in between": {read(early, "a=1"), read(late, "a=1"), late},
		"what comes after a lost key has its time":                                  {read(time.Time{}, "a=1"), read(late, "a=2"), late},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, changedAt(test.now, test.before)) })
	}
}
