package kube

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
)

func read(t *testing.T, answer []byte, sent *object.Full) (Stored, error) {
	t.Helper()
	body, err := encode(sent)
	require.NoError(t, err)
	return readStored(io.NopCloser(bytes.NewReader(answer)), sent, body)
}

func TestAnAnswerIsTakenForWhatWasSentIfItHasAllOfThatAndNoMore(t *testing.T) {
	for sentence, test := range map[string]struct {
		admission func(stored *object.Full)
		asSent    bool
	}{
		"nothing": {func(*object.Full) {}, true},
		"an owner and a finalizer": {func(o *object.Full) {
			o.OwnerReferences, o.Finalizers = []metav1.OwnerReference{{Name: "a"}}, []string{"b/c"}
		}, true},
		"a label":                   {func(o *object.Full) { o.Labels = map[string]string{"a": "b", "c": ""} }, false},
		"all labels":                {func(o *object.Full) { o.Labels = nil }, false},
		"a label for an annotation": {func(o *object.Full) { o.Labels, o.Annotations = o.Annotations, o.Labels }, false},
		"an annotation":             {func(o *object.Full) { o.Annotations = map[string]string{"k": "w"} }, false},
		"a value":                   {func(o *object.Full) { o.Content.Data = map[string][]byte{"k": []byte("v"), "l": []byte("W")} }, false},
		"a key":                     {func(o *object.Full) { o.Content.Data = map[string][]byte{"k": []byte("v")} }, false},
		"immutable":                 {func(o *object.Full) { o.Content.Immutable = !o.Content.Immutable }, false},
		"the kind": {func(o *object.Full) {
			o.Kind = map[object.Kind]object.Kind{object.Secret: object.ConfigMap, object.ConfigMap: object.Secret}[o.Kind]
		}, false},
	} {
		for _, kind := range object.Kinds {
			t.Run(string(kind)+", admission changes "+sentence, func(t *testing.T) {
				sent := &object.Full{
					Kind: kind, Content: object.Content{Data: map[string][]byte{"k": []byte("v"), "l": []byte("w")}},
					ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "base", ResourceVersion: "7", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"k": "v"}},
				}
				stored := *sent
				stored.UID, stored.ResourceVersion, stored.Generation, stored.CreationTimestamp = "uid", "300", 200, metav1.Unix(1_800_000_000, 0)
				stored.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "headwater", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}}
				test.admission(&stored)
				answer, err := encode(&stored)
				require.NoError(t, err)
				got, err := read(t, answer, sent)
				require.NoError(t, err)
				require.Equal(t, test.asSent, got.AsSent)
				require.Equal(t, "uid 300", string(got.UID)+" "+got.ResourceVersion)
				require.Equal(t, stored.Kind, got.Kind)
				require.Equal(t, stored.Labels, got.Labels)
				require.Equal(t, stored.Annotations, got.Annotations)
				require.Equal(t, stored.Content, got.Content)
				require.Equal(t, "7", sent.ResourceVersion, "what was sent is as it was")

				for end := range answer { // it breaks off
					got, _ := read(t, answer[:end], sent)
					require.False(t, got.AsSent)
				}
			})
		}
	}
}

func TestAnAnswerThatIsNoObjectIsNotQuoted(t *testing.T) {
	_, err := read(t, []byte(`{"data":{"k":"c2VjcmV0"}}`), &object.Full{Kind: object.Secret})
	require.EqualError(t, err, "the API server stored it, but its answer is no object")
}
