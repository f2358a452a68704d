package mark

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheFieldManagerIsNamedThatWroteSinceHeadwater(t *testing.T) {
	entry := func(manager string, second int64) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Unix(second, 0))
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &at}
	}
	for sentence, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"nobody wrote":                             {},
		"Headwater alone":                          {entries: []metav1.ManagedFieldsEntry{entry(FieldManager, 1)}},
		"another, later":                           {entries: []metav1.ManagedFieldsEntry{entry("rival", 2), entry(FieldManager, 1)}, want: "rival"},
		"Headwater's own report, later":            {entries: []metav1.ManagedFieldsEntry{entry(FieldManager, 1), entry(ReportManager, 2)}},
		"another, in the same second":              {entries: []metav1.ManagedFieldsEntry{entry("rival", 1), entry(FieldManager, 1)}, want: "rival"},
		"another, in the same second, listed last": {entries: []metav1.ManagedFieldsEntry{entry(FieldManager, 1), entry("rival", 1)}, want: "rival"},
		"another, before Headwater":                {entries: []metav1.ManagedFieldsEntry{entry("early", 1), entry(FieldManager, 2)}},
		"two others":                               {entries: []metav1.ManagedFieldsEntry{entry("late", 3), entry(FieldManager, 1), entry("early", 2)}, want: "late"},
		"one without a time":                       {entries: []metav1.ManagedFieldsEntry{{Manager: "timeless"}, entry(FieldManager, 1)}},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, LastOther(test.entries)) })
	}
}
