package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestAWriteReturnsWhatIsStoredAndUnderstandsARefusal(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RequestURI())
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"base"},"immutable":true}`))
	}))
	defer server.Close()
	typed, err := newTyped(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	writer := NewWriter(&Clients{Typed: typed})

	o := &object.Full{Kind: object.ConfigMap, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "base"}}
	stored, err := writer.Create(t.Context(), o)
	require.NoError(t, err)
	require.True(t, stored.Content.Immutable)
	o.UID, o.ResourceVersion = "uid", "1"
	_, err = writer.Update(t.Context(), o)
	require.True(t, apierrors.IsConflict(err))
	require.Equal(t, []string{
		"POST /api/v1/namespaces/team/configmaps?fieldManager=headwater",
		"PUT /api/v1/namespaces/team/configmaps/base?fieldManager=headwater",
	}, asked)
}
