package configmap_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/configmap"
)

func TestARecordIsDeletedOnlyIfNobodyCanWriteIt(t *testing.T) {
	for sentence, immutable := range map[string]bool{
		"it is immutable": true,
		"a policy refuses the write, or it would be too large": false,
	} {
		t.Run(sentence, func(t *testing.T) {
			client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "record"}, Immutable: &immutable, Data: map[string]string{"a": "old"}})
			client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), "record", nil)
			})
			store := configmap.Store{Client: client, Namespace: "own", Name: "record"}
			err := store.Write(t.Context(), map[string]string{"a": "new"})
			data, readErr := store.Read(t.Context())
			require.NoError(t, readErr)
			if immutable {
				require.NoError(t, err)
				require.Equal(t, map[string]string{"a": "new"}, data)
				return
			}
			require.Error(t, err)
			require.Equal(t, map[string]string{"a": "old"}, data)
		})
	}
}
