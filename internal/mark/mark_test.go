package mark

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestStampedMarksAreReadBack(t *testing.T) {
	clone := Clone{Rule: "blog", Source: object.Ref{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"}, SourceUID: "u"}
	shared := map[string]string{"team": "a"}
	meta := metav1.ObjectMeta{Labels: shared}
	Stamp(&meta, clone)
	read, ok := Of(&meta)
	require.True(t, ok)
	require.Equal(t, clone, read)
	require.Equal(t, "blog", meta.Labels[Rule], "people select the clones of a rule by it")
	require.Equal(t, map[string]string{"team": "a"}, shared, "a map shared with a cache must not be modified")
}

func TestUnreadableMarksAreNotOurs(t *testing.T) {
	for sentence, strip := range map[string]func(*metav1.ObjectMeta){
		"without the label":        func(m *metav1.ObjectMeta) { m.Labels = nil },
		"with another label value": func(m *metav1.ObjectMeta) { m.Labels[CloneLabel] = "yes" },
		"without the rule":         func(m *metav1.ObjectMeta) { delete(m.Annotations, Rule) },
		"with a rule of no name":   func(m *metav1.ObjectMeta) { m.Annotations[Rule] = "Any text" },
		"with too long a source":   func(m *metav1.ObjectMeta) { m.Annotations[Source] = "Secret/p/" + strings.Repeat("s", 254) },
		"with a malformed source":  func(m *metav1.ObjectMeta) { m.Annotations[Source] = "blogsecret" },
		"without any annotation":   func(m *metav1.ObjectMeta) { m.Annotations = nil },
	} {
		t.Run(sentence, func(t *testing.T) {
			var meta metav1.ObjectMeta
			Stamp(&meta, Clone{Rule: "blog", Source: object.Ref{Kind: object.Secret, Namespace: "p", Name: "s"}})
			strip(&meta)
			_, ok := Of(&meta)
			require.False(t, ok)
		})
	}
}

func TestAClonesMarksAreReadWithoutTheLabelOfItsRule(t *testing.T) {
	clone := Clone{Rule: "blog", Source: object.Ref{Kind: object.Secret, Namespace: "p", Name: "s"}}
	var meta metav1.ObjectMeta
	Stamp(&meta, clone)
	meta.Labels[Rule] = "other"
	read, ok := Of(&meta)
	require.True(t, ok)
	require.Equal(t, clone, read)
	delete(meta.Labels, Rule)
	read, ok = Of(&meta)
	require.True(t, ok)
	require.Equal(t, clone, read)
}

func TestTheLongestNameOfARuleIsALabelValue(t *testing.T) {
	longest := strings.Repeat("r", validation.DNS1123LabelMaxLength)
	require.Empty(t, validation.IsDNS1123Label(longest))
	require.Empty(t, validation.IsValidLabelValue(longest))
}

func TestAnUnstampedObjectIsNobodys(t *testing.T) {
	labels := map[string]string{"team": "a"}
	ours := metav1.ManagedFieldsEntry{
		Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{}},"f:type":{}}`),
	}
	theirs := metav1.ManagedFieldsEntry{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:team":{}}}}`)}
	for sentence, test := range map[string]struct{ before, after []metav1.ManagedFieldsEntry }{
		"others keep what they own":                          {[]metav1.ManagedFieldsEntry{ours, theirs}, []metav1.ManagedFieldsEntry{theirs}},
		"where nobody else owns anything, it is all dropped": {[]metav1.ManagedFieldsEntry{ours}, []metav1.ManagedFieldsEntry{{}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			meta := metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"note": "n"}, ManagedFields: test.before}
			Stamp(&meta, Clone{Rule: "blog", Source: object.Ref{Kind: object.Secret, Namespace: "p", Name: "s"}, SourceUID: "u"})
			stamped := meta.Labels
			Unstamp(&meta)
			require.Equal(t, labels, meta.Labels)
			require.Equal(t, map[string]string{"note": "n"}, meta.Annotations)
			require.Equal(t, test.after, meta.ManagedFields)
			require.False(t, MadeByUs(meta.ManagedFields))
			require.Len(t, stamped, 3, "a map shared with a cache must not be modified")
		})
	}
}

func TestOursPicksOnlyHeadwatersKeys(t *testing.T) {
	require.Equal(t, map[string]string{CloneLabel: "true"}, Ours(map[string]string{CloneLabel: "true", "headwater.dev": "x", "a": "b"}))
}

func TestMarksCountOnlyForTheirPlace(t *testing.T) {
	clone := metav1.ObjectMeta{Namespace: "team", Name: "shared"}
	Stamp(&clone, Clone{Rule: "r", Source: object.Ref{Kind: object.Secret, Namespace: "p", Name: "s"}})
	for sentence, test := range map[string]struct {
		change func(*metav1.ObjectMeta)
		want   object.Place
		ours   bool
	}{
		"here":                          {func(*metav1.ObjectMeta) {}, object.Here, true},
		"by an earlier build":           {func(m *metav1.ObjectMeta) { delete(m.Annotations, Target) }, object.NoPlace, true},
		"a copy in another namespace":   {func(m *metav1.ObjectMeta) { m.Namespace = "other" }, object.Elsewhere, false},
		"a copy under another name":     {func(m *metav1.ObjectMeta) { m.Name = "other" }, object.Elsewhere, false},
		"a copy with an empty place":    {func(m *metav1.ObjectMeta) { m.Annotations[Target] = "" }, object.Elsewhere, false},
		"one that names half its place": {func(m *metav1.ObjectMeta) { m.Annotations[Target] = "team" }, object.Elsewhere, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			meta := *clone.DeepCopy()
			test.change(&meta)
			require.Equal(t, test.want, PlaceOf(&meta))
			require.Equal(t, test.ours, IsMarked(&meta))
			_, ours := Of(&meta)
			require.Equal(t, test.ours, ours)
		})
	}
}
