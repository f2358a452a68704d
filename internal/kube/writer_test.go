package kube

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestAWriteAsksForMetadataAndUnderstandsARefusal(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RequestURI())
		for media := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
			if media != "application/json" && !strings.HasSuffix(media, ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1") {
				t.Errorf("%s accepts %s", r.Method, media)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"base"}}`))
	}))
	defer server.Close()
	typed, err := newTyped(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	writer := NewWriter(&Clients{Typed: typed})

	o := &object.Full{Kind: object.ConfigMap, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "base"}}
	require.NoError(t, writer.Create(t.Context(), o))
	o.UID, o.ResourceVersion = "uid", "1"
	require.True(t, apierrors.IsConflict(writer.Update(t.Context(), o)))
	require.Equal(t, []string{
		"POST /api/v1/namespaces/team/configmaps?fieldManager=headwater",
		"PUT /api/v1/namespaces/team/configmaps/base?fieldManager=headwater",
	}, asked)
}
