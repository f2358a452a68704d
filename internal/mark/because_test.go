package mark

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
)

var restarted = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestWhyAWorkloadWasRestartedIsOneShortLine(t *testing.T) {
	one := ObjectVersion{object.ConfigMap, "app", "123"}
	many := make([]ObjectVersion, 20)
	for i := range many {
		many[i] = ObjectVersion{object.Secret, strings.Repeat("s", 30), "1234567"}
	}
	for sentence, test := range map[string]struct {
		because Because
		want    string
	}{
		"all that is known": {
			Because{Objects: []ObjectVersion{one}, Rule: "settings", Revision: 7, At: restarted, Stamp: 63, By: "kubectl edit"},
			"objects=ConfigMap/app@123 rule=settings revision=7 at=2026-01-02T03:04:05Z stamp=3f by=kubectl edit",
		},
		"an owner's own object": {Because{Objects: []ObjectVersion{one}, At: restarted}, "objects=ConfigMap/app@123 at=2026-01-02T03:04:05Z"},
		"an editor of several lines": {
			Because{Objects: []ObjectVersion{one}, At: restarted, By: "a\nb"}, "objects=ConfigMap/app@123 at=2026-01-02T03:04:05Z by=ab",
		},
		"too many objects": {Because{Objects: many, Rule: "settings", At: restarted}, ",+16 rule=settings at=2026-01-02T03:04:05Z"},
		"a name that is too long": {
			Because{Objects: []ObjectVersion{{object.Secret, strings.Repeat("s", 253), "1"}}, At: restarted}, "objects=+1 at=2026-01-02T03:04:05Z",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			value := test.because.Format()
			require.Contains(t, value, test.want)
			require.LessOrEqual(t, len(value), maxBecause)
			read, ok := ParseBecause(value)
			require.True(t, ok)
			require.Equal(t, value, read.Format())
		})
	}
	require.Equal(t, "ConfigMap/app, 2 more changed (rule settings, revision 7, edited by kubectl edit)",
		Because{Objects: []ObjectVersion{one}, More: 2, Rule: "settings", Revision: 7, By: "kubectl edit"}.String())
}

// Whatever an owner writes there is read, or refused, and what is read is read the same again.
func FuzzBecause(f *testing.F) {
	f.Add("objects=ConfigMap/app@123,+3 rule=settings revision=7 at=2026-01-02T03:04:05Z by=kubectl edit")
	f.Add("objects= at=")
	f.Fuzz(func(t *testing.T, value string) {
		read, ok := ParseBecause(value)
		if !ok || read.At.UTC().Year() > 9998 || read.At.UTC().Year() < 1 {
			return
		}
		written := read.Format()
		if len(written) > maxBecause {
			return // the names of rules and objects are not bounded here
		}
		again, ok := ParseBecause(written)
		require.True(t, ok, written)
		require.Equal(t, written, again.Format())
	})
}
