package reload

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/headwater-k8s/headwater/test/lab"
)

// unanswered has o go to the API server by a way on which, while lose is true, no patch is
// answered that the API server accepted.
func (e *env) unanswered(o lab.Options) (lose *atomic.Bool) {
	e.Helper()
	lose = &atomic.Bool{}
	config := e.Cluster.Config()
	target, err := url.Parse(config.Host)
	require.NoError(e, err)
	way := httputil.NewSingleHostReverseProxy(target)
	way.FlushInterval = -1 // watches
	way.Transport, err = rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData, CAFile: config.CAFile}})
	require.NoError(e, err)
	way.ModifyResponse = func(answer *http.Response) error {
		if lose.Load() && answer.Request.Method == http.MethodPatch && answer.StatusCode < http.StatusBadRequest {
			return errors.New("lost")
		}
		return nil
	}
	way.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewTLSServer(way)
	e.Cleanup(server.Close)

	kubeconfig, err := clientcmd.LoadFromFile(o.Kubeconfig)
	require.NoError(e, err)
	for _, cluster := range kubeconfig.Clusters {
		cluster.Server = server.URL
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	require.NoError(e, clientcmd.WriteToFile(*kubeconfig, o.Kubeconfig))
	return lose
}

// The API server stores a restart, and its answer does not arrive.
func TestARestartWhoseAnswerIsLostIsNotRepeated(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("unanswered")
	e.Deployment(namespace, "by-env", lab.ByEnv("shared", "used"), nil)
	o := e.Options(lab.ReloadRule("unanswered"))
	o.Args = []string{lab.Alone}
	lose := e.unanswered(o)
	h := e.Launch(o)
	require.NoError(t, h.Ready(t.Context()))
	e.Adopted(h, namespace, "by-env")

	lose.Store(true)
	e.Change("unanswered", "used", "2")
	var restarted *appsv1.Deployment
	lab.Until(e, e.Admin.AppsV1().Deployments(namespace).Get, "by-env", func(now *appsv1.Deployment) error {
		restarted = now
		return lab.ErrorIf(len(now.Spec.Template.Annotations) == 0, "it is not restarted yet")
	})
	e.HasEvent(namespace, "by-env", "Restarted")
	e.Settled(h)
	lose.Store(false)
	now, err := e.Admin.AppsV1().Deployments(namespace).Get(t.Context(), "by-env", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, restarted.Spec.Template.Annotations, now.Spec.Template.Annotations)

	before := e.Stamps(namespace)
	e.Change("unanswered", "used", "3")
	e.Restarted(namespace, before, "Deployment/by-env")
}
