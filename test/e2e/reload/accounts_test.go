package reload

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestPullSecretsThroughAServiceAccountAreShown(t *testing.T) {
	e := newEnv(t)
	namespace := e.Namespace("accounts")
	e.Secret(namespace, "regcred", map[string]string{"k": "1"})
	e.Create(namespace, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "builder"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "regcred"}},
	})
	spec := lab.ByNothing()
	spec.ServiceAccountName = "builder"
	e.Deployment(namespace, "builds", spec, nil)
	e.Deployment(namespace, "other", lab.ByNothing(), nil)
	viewer, file := e.Viewer("accounts-viewer"), e.ConfigFile(lab.ReloadRule("accounts"))
	shown := func(args ...string) string {
		out, problem, exit := e.Command(viewer, append(args, "--config", file)...)
		require.Zero(t, exit, problem)
		return out
	}
	require.Regexp(t, `Secret/accounts/regcred +ImagePull +ServiceAccount/builder +- +Nothing`, shown("explain", "deploy/accounts/builds"))
	consumers := shown("consumers", "Secret/accounts/regcred")
	require.Regexp(t, `Deployment/accounts/builds +ImagePull +ServiceAccount/builder +- +Nothing`, consumers)
	require.NotContains(t, consumers, "Deployment/accounts/other")
}
