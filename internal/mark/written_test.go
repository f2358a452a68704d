package mark

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWrittenKeysAreThoseThatHeadwaterOwns(t *testing.T) {
	meta := &metav1.ObjectMeta{
		Labels:      map[string]string{CloneLabel: "true", "ours": "1", "theirs": "2"},
		Annotations: map[string]string{Rule: "r", "note": "n"},
	}
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	meta.ManagedFields = []metav1.ManagedFieldsEntry{
		entry(FieldManager, `{"f:data":{".":{},"f:k":{}},"f:metadata":{"f:labels":{".":{},"f:headwater.dev/clone":{},"f:ours":{},"f:gone":{}},"f:annotations":{"f:note":{}}}}`),
		entry("kubectl", `{"f:metadata":{"f:labels":{"f:theirs":{}}}}`),
	}
	labels, annotations := WrittenKeys(meta)
	require.Equal(t, []string{"ours"}, labels)
	require.Equal(t, []string{"note"}, annotations)

	meta.ManagedFields = []metav1.ManagedFieldsEntry{entry(FieldManager, `no JSON`)}
	labels, annotations = WrittenKeys(meta)
	require.Empty(t, labels)
	require.Empty(t, annotations)
}
