package mark

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestOursPicksOnlyHeadwatersKeys(t *testing.T) {
	require.Equal(t, map[string]string{CloneLabel: "true"}, Ours(map[string]string{CloneLabel: "true", "headwater.dev": "x", "a": "b"}))
}
