package mark

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
)

var dnsLabel = regexp.MustCompile(`\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\z`)

// What is stamped is read back, whatever else is on the object; and whatever is
// on an object is either no mark of a clone or one that can be stamped again.
func FuzzClone(f *testing.F) {
	f.Add("blog", "Secret/platform/blogsecret", "uid", "Delete", "true", "team", "a")
	f.Add("", "ConfigMap/p/s", "", "", "yes", CloneLabel, "false")
	f.Add("r", "Pod/p/s", "u", "", "true", Source, "Secret/other/x")
	f.Add("r", "Secret/p/s/t", "u", "", "true", Rule, "")
	f.Add("no rule's name", "Secret/p/s", "u", "", "true", "team", "a")
	f.Fuzz(func(t *testing.T, rule, source, uid, removed, label, key, value string) {
		meta := metav1.ObjectMeta{
			Labels:      map[string]string{CloneLabel: label, "else": value},
			Annotations: map[string]string{key: value, Rule: rule, Source: source, SourceUID: uid},
		}
		if removed != "" {
			meta.Annotations[OnRuleRemoved] = removed
		}
		read, ours := Of(&meta)
		ref, err := object.ParseRef(source)
		require.Equal(t, label == "true" && dnsLabel.MatchString(rule) && err == nil, ours)
		if !ours {
			require.Zero(t, read)
			return
		}
		want := Clone{Rule: rule, Source: ref, SourceUID: types.UID(uid), SourceVersion: meta.Annotations[SourceVersion], OnRuleRemoved: meta.Annotations[OnRuleRemoved]}
		require.Equal(t, want, read)
		stamped := metav1.ObjectMeta{Labels: map[string]string{"else": value}, Annotations: map[string]string{"else": value}}
		Stamp(&stamped, read)
		again, ours := Of(&stamped)
		require.True(t, ours)
		require.Equal(t, read, again)
		require.Equal(t, value, stamped.Annotations["else"])
	})
}

// Reading is total, and what was read is written so that it is read the same.
func FuzzRestarts(f *testing.F) {
	f.Add("2026-01-02T03:04:05.678Z", "30,90,3600", uint16(5))
	f.Add("2026-01-02T03:04:05+01:00", ",x,-1,65536,65535", uint16(0))
	f.Add("0001-01-01T00:00:00Z", "1", uint16(1))
	f.Add("9999-12-31T23:59:59.999999999-23:59", "65535", uint16(1))
	f.Fuzz(func(t *testing.T, at, before string, later uint16) {
		read := ParseRestarts(at, before)
		require.Equal(t, ParseTime(at).IsZero(), len(read) == 0)
		require.True(t, slices.IsSortedFunc(read, time.Time.Compare))
		if len(read) == 0 || read[0].Year() < 1 || read[len(read)-1].UTC().Year() > 9998 {
			return
		}
		next := read.With(read[len(read)-1].Add(time.Duration(later) * time.Second))
		require.LessOrEqual(t, len(next), maxRestarts)
		require.NotEmpty(t, next)
		written, ago := next.Format()
		again := ParseRestarts(written, ago)
		require.Len(t, again, len(next))
		for i := range next {
			require.WithinDuration(t, next[i], again[i], time.Second)
		}
		onceMore, agoAgain := again.Format()
		require.Equal(t, written, onceMore)
		require.Equal(t, ago, agoAgain)
	})
}

// What a rule has set is read back, and nobody else's annotation is taken for
// it.
func FuzzFields(f *testing.F) {
	f.Add("rule", "spec.a", "spec.b.c", "set.headwater.dev/other", "spec.d")
	f.Add("r", "spec.a", "", "headwater.dev/baseline", "v1:")
	f.Fuzz(func(t *testing.T, rule, first, second, key, value string) {
		paths := []string{first, second}
		if first == "" || strings.Contains(first+second, ",") || key == SetBy(rule) {
			return
		}
		fields := SetFields(map[string]string{SetBy(rule): FormatFields(paths), key: value})
		require.Equal(t, paths, fields[rule])
		other, known := strings.CutPrefix(key, "set."+Domain)
		require.Equal(t, known && value != "", len(fields) == 2)
		if known && value != "" {
			require.Equal(t, value, FormatFields(fields[other]))
		}
	})
}

// Keys that an owner names are keys, each once, and read the same again.
func FuzzReloadKeys(f *testing.F) {
	f.Add("tls.crt, b,a")
	f.Add(",")
	f.Fuzz(func(t *testing.T, value string) {
		keys, err := ParseReloadKeys(value)
		require.Equal(t, err != nil, len(keys) == 0)
		if err != nil {
			require.Less(t, len(err.Error()), 1024)
			return
		}
		require.True(t, slices.IsSorted(keys))
		require.Len(t, slices.Compact(slices.Clone(keys)), len(keys))
		again, err := ParseReloadKeys(strings.Join(keys, ","))
		require.NoError(t, err)
		require.Equal(t, keys, again)
	})
}

// Of what a field manager owns nothing is named that is not there, nor a mark,
// whatever the API server says about fields.
func FuzzWrittenKeys(f *testing.F) {
	f.Add(`{"f:metadata":{"f:labels":{"f:team":{},".":{}},"f:annotations":{"f:headwater.dev/rule":{}}}}`, "team", "x", FieldManager)
	f.Add(`{"f:metadata":{"f:labels":{"f:team":{}}}}`, "team", "x", "kubectl")
	f.Add(`[]`, "a", "b", FieldManager)
	f.Fuzz(func(t *testing.T, fields, label, annotation, manager string) {
		meta := metav1.ObjectMeta{
			Labels: map[string]string{label: "1", CloneLabel: "true"}, Annotations: map[string]string{annotation: "2", Rule: "r"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}},
		}
		labels, annotations := WrittenKeys(&meta)
		require.Subset(t, []string{label}, labels)
		require.Subset(t, []string{annotation}, annotations)
		for _, key := range slices.Concat(labels, annotations) {
			require.False(t, strings.HasPrefix(key, Domain))
			require.Equal(t, FieldManager, manager)
			require.True(t, json.Valid([]byte(fields)))
		}
		require.False(t, MadeByUs(meta.ManagedFields), "no field was updated")
	})
}
