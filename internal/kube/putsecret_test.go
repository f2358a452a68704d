package kube

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

func TestAnImmutableRecordGoesOnlyIfItCanComeBack(t *testing.T) {
	const name = "headwater-digest-key"
	exists := apierrors.NewAlreadyExists(corev1.Resource("secrets"), name)
	for sentence, test := range map[string]struct {
		answer, deleted error
		fails           string
	}{
		"allowed, since it exists": {answer: exists},
		"denied by a webhook as if it existed": {answer: &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists, Message: `admission webhook "a.example.org" denied the request: no`,
		}}, fails: "a.example.org"},
		"refused by a full quota": {
			answer: apierrors.NewForbidden(corev1.Resource("secrets"), name, errors.New("exceeded quota: all, requested: secrets=1, used: secrets=8, limited: secrets=8")),
			fails:  "raise it or delete the object yourself",
		},
		"not deleted": {answer: exists, deleted: errors.New("etcd is away"), fails: "etcd is away"},
	} {
		t.Run(sentence, func(t *testing.T) {
			stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hw", Name: name, UID: "first"}, Immutable: new(true)}
			client := fake.NewClientset(stored)
			client.PrependReactor("create", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
				isTrial := len(action.(k8stesting.CreateActionImpl).CreateOptions.DryRun) > 0
				return isTrial, nil, test.answer
			})
			client.PrependReactor("delete", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
				return test.deleted != nil, nil, test.deleted
			})
			desired := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hw", Name: name}, Data: map[string][]byte{"k": []byte("v")}}
			err := PutSecret(t.Context(), client, stored, desired)
			now, read := client.CoreV1().Secrets("hw").Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, read)
			if test.fails == "" {
				require.NoError(t, err)
				require.Equal(t, desired.Data, now.Data)
				return
			}
			require.ErrorContains(t, err, test.fails)
			require.Equal(t, stored, now)
		})
	}
}
