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

func TestTheMakerIsKnownByWhatTheMakerAloneOwns(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	for sentence, test := range map[string]struct {
		manager   string
		operation metav1.ManagedFieldsOperationType
		fields    string
		want      bool
	}{
		"who made the Secret":                 {FieldManager, update, `{"f:data":{".":{},"f:k":{}},"f:type":{}}`, true},
		"who made it, and wrote no value":     {FieldManager, update, `{"f:type":{}}`, true},
		"who made the ConfigMap":              {FieldManager, update, `{"f:data":{".":{},"f:k":{}}}`, true},
		"who made it, of binary data":         {FieldManager, update, `{"f:binaryData":{".":{},"f:k":{}}}`, true},
		"who made it, by another name":        {"kubectl", update, `{"f:data":{".":{}},"f:type":{}}`, false},
		"who wrote a label, by our name":      {FieldManager, update, `{"f:metadata":{"f:labels":{".":{},"f:x":{}}}}`, false},
		"who wrote a single key, by our name": {FieldManager, update, `{"f:data":{"f:k":{}}}`, false},
		"who applied the type, by our name":   {FieldManager, apply, `{"f:data":{".":{}},"f:type":{}}`, false},
		"fields that cannot be read":          {FieldManager, update, `no JSON`, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			entry := metav1.ManagedFieldsEntry{Manager: test.manager, Operation: test.operation, FieldsV1: metav1.NewFieldsV1(test.fields)}
			require.Equal(t, test.want, MadeByUs([]metav1.ManagedFieldsEntry{{Manager: FieldManager}, entry}))
		})
	}
}
