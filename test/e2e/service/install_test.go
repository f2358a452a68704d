package service

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// installation is Headwater as the chart installs it; its process, which no
// kubelet starts here, is run by the test as the Deployment says.
type installation struct {
	*env

	folder string // the mounted ConfigMap
	mounts int
	runs   int
}

// install applies what the chart renders.
func install(t *testing.T) *installation {
	t.Helper()
	c := cluster.ForTest(t, cluster.Options{})
	i := &installation{env: &env{lab.On(t, c)}, folder: t.TempDir()}
	i.apply("deploy/kustomize/namespace.yaml")
	i.apply("deploy/kustomize/headwater.yaml")
	return i
}

func (i *installation) apply(file string) {
	i.Helper()
	require.NoError(i, lab.Apply(i.Context(), i.Cluster.Config(), filepath.Join(lab.Root(i.T), file)))
}

// mount brings the ConfigMap to the pod as a kubelet does: into a folder of its
// own, which takes the place of the last one by a link.
func (i *installation) mount() {
	i.Helper()
	config := lab.Read(i, i.Admin.CoreV1().ConfigMaps(lab.Namespace).Get, "headwater")
	i.mounts++
	revision := fmt.Sprintf("..revision-%d", i.mounts)
	require.NoError(i, os.Mkdir(filepath.Join(i.folder, revision), 0o755))
	for name, content := range config.Data {
		require.NoError(i, os.WriteFile(filepath.Join(i.folder, revision, name), []byte(content), 0o600))
		if i.mounts == 1 {
			require.NoError(i, os.Symlink(filepath.Join("..data", name), filepath.Join(i.folder, name)))
		}
	}
	fresh := filepath.Join(i.folder, "..data_tmp")
	require.NoError(i, os.Symlink(revision, fresh))
	require.NoError(i, os.Rename(fresh, filepath.Join(i.folder, "..data")))
}

// configure changes the ConfigMap, and mounts it.
func (i *installation) configure(rules string) {
	i.Helper()
	configMaps := i.Admin.CoreV1().ConfigMaps(lab.Namespace)
	config := lab.Read(i, configMaps.Get, "headwater")
	config.Data["headwater.yaml"] = "apiVersion: headwater.dev/v1alpha1\nkind: Config\nrules:\n" + rules
	_, err := configMaps.Update(i.Context(), config, metav1.UpdateOptions{})
	require.NoError(i, err)
	i.mount()
}

// token is one of a service account, as a pod of it would have.
func (i *installation) token(namespace, account string) string {
	i.Helper()
	request, err := i.Admin.CoreV1().ServiceAccounts(namespace).CreateToken(i.Context(), account,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(i, err)
	return request.Status.Token
}

// pod runs the binary with the flags and the token of the Deployment's pods;
// only its addresses are of this machine.
func (i *installation) pod() lab.Options {
	i.Helper()
	deployment := lab.Read(i, i.Admin.AppsV1().Deployments(lab.Namespace).Get, "headwater")
	container := deployment.Spec.Template.Spec.Containers[0]
	require.Equal(i, "/etc/headwater", container.VolumeMounts[0].MountPath)
	require.Equal(i, "run", container.Args[0])
	var args []string
	for _, arg := range container.Args[1:] {
		arg = strings.ReplaceAll(arg, "$(POD_NAMESPACE)", lab.Namespace)
		if !strings.HasPrefix(arg, "--metrics-address=") && !strings.HasPrefix(arg, "--webhook-address=") {
			args = append(args, strings.ReplaceAll(arg, "/etc/headwater", i.folder))
		}
	}
	kubeconfig, err := clientcmd.LoadFromFile(i.Cluster.Kubeconfig())
	require.NoError(i, err)
	for _, user := range kubeconfig.AuthInfos {
		user.Token = i.token(lab.Namespace, deployment.Spec.Template.Spec.ServiceAccountName)
	}
	file := filepath.Join(i.Dir, "pod.kubeconfig")
	require.NoError(i, clientcmd.WriteToFile(*kubeconfig, file))
	i.runs++
	return lab.Options{
		Binary: lab.Binary(i.T), Kubeconfig: file, Config: filepath.Join(i.folder, "headwater.yaml"), Args: args,
		Webhook: i.Webhook, Dir: i.Dir, Name: fmt.Sprintf("pod-%d", i.runs),
	}
}

// hasPods waits until the Deployment has made its pods, which takes that they
// are admitted to a namespace of restricted pods.
func (i *installation) hasPods(want int) {
	i.Helper()
	i.Eventually(func(ctx context.Context) error {
		pods, err := i.Admin.CoreV1().Pods(lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=headwater"})
		return errors.Join(err, lab.ErrorIf(len(pods.Items) != want, "%d pods, want %d", len(pods.Items), want))
	})
}

// asksTheWebhook edits the source as an allowed user. No policy refuses that, so the
// API server asks the webhook as well.
func (i *installation) asksTheWebhook(h *lab.Headwater) {
	i.Helper()
	i.ClusterRole("installed-editor", lab.SecretsEditor())
	i.Grant("", "installed-editor", "installed-owner")
	owner := i.Client("installed-owner")
	i.Eventually(func(ctx context.Context) error {
		if err := lab.TryEdit(ctx, owner, "installed-src", "shared", "x"); err != nil {
			return err
		}
		asked, err := h.Metric(ctx, "headwater_protect_requests_total", map[string]string{"verdict": "allowed"})
		return errors.Join(err, lab.ErrorIf(asked == 0, "the webhook was not asked"))
	})
}

var installedRule = lab.Rule("installed", `sync: {namespaces: {include: ["installed-*"]}}`, "protect: {allow: {users: [installed-owner]}}", "reload: {debounce: 0s}")

// What the chart installs is accepted, and with its identity and its flags
// Headwater does its work. All that is measured then is in METRICS.md, which
// alerts and dashboard are held against.
func TestWhatTheChartInstallsWorks(t *testing.T) {
	i := install(t)
	i.hasPods(2)
	i.mount()
	h := i.Launch(i.pod())
	require.NoError(t, h.Ready(t.Context()), "without any rule")

	i.Namespaces("installed-src", "installed-a", "installed-full")
	data := map[string]string{"k": "v"}
	i.Secret("installed-src", "shared", data)
	i.quota("installed-full")
	i.Deployment("installed-a", "reads-env", lab.ByEnv("shared", "k"), nil)
	i.configure(installedRule) // a link that moves is a change of the file
	i.HasClone("installed-a", "shared", data)
	i.hasStamp(h)
	require.Contains(t, denialOf(i.env, "installed-src", "shared", "forged"), "protected by rule")
	i.asksTheWebhook(h)
	requireKnownMetrics(i.env, h)
	requests, err := i.Cluster.Requests(t.Context(), func(r cluster.Request) bool {
		return r.User == lab.ServiceAccount && r.Code == http.StatusForbidden && r.Namespace != "installed-full"
	})
	require.NoError(t, err)
	require.Empty(t, requests, "refused because a permission is missing")

	i.servedApart()

	h.Stop()
	i.apply("test/deploy/testdata/metrics-auth.golden.yaml") // an upgrade, from here on with --metrics-auth
	i.onlyScrapersScrape(i.Launch(i.pod()))
}

// quota leaves no room for a Secret.
func (i *installation) quota(namespace string) {
	i.Helper()
	quotas := i.Admin.CoreV1().ResourceQuotas(namespace)
	_, err := quotas.Create(i.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	require.NoError(i, err)
	lab.Until(i, quotas.Get, "none", func(quota *corev1.ResourceQuota) error {
		return lab.ErrorIf(quota.Status.Hard == nil, "the quota is not in force yet")
	})
}

// hasStamp changes the source until the consumer was restarted for it.
func (i *installation) hasStamp(h *lab.Headwater) {
	i.Helper()
	require.NoError(i, h.Idle(i.Context()))
	i.Edit("installed-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("w") })
	i.Eventually(func(ctx context.Context) error {
		var found *appsv1.Deployment
		found, err := i.Admin.AppsV1().Deployments("installed-a").Get(ctx, "reads-env", metav1.GetOptions{})
		return errors.Join(err, lab.ErrorIf(found.Generation == 1, "not restarted"))
	})
}

// servedApart asks the API server by which FlowSchema it serves the service
// account: one that another goes before would do nothing.
func (i *installation) servedApart() {
	i.Helper()
	schemas := i.Admin.FlowcontrolV1().FlowSchemas()
	for path, name := range map[string]string{
		"/api/v1/secrets": "headwater",
		"/apis/coordination.k8s.io/v1/namespaces/" + lab.Namespace + "/leases/headwater": "headwater-leader-election",
	} {
		schema := lab.Read(i, schemas.Get, name)
		config := i.Cluster.Config()
		config.BearerToken = i.token(lab.Namespace, "headwater")
		client, err := rest.HTTPClientFor(config)
		require.NoError(i, err)
		i.Eventually(func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
			if err != nil {
				return err
			}
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			_ = response.Body.Close()
			if uid := response.Header.Get("X-Kubernetes-Pf-Flowschema-Uid"); uid != string(schema.UID) {
				return fmt.Errorf("%s is served by FlowSchema %s, not by %s", path, uid, name)
			}
			return nil
		})
	}
}

// onlyScrapersScrape asks a Headwater that was started with --metrics-auth.
func (i *installation) onlyScrapersScrape(h *lab.Headwater) {
	i.Helper()
	for _, name := range []string{"scraper", "nobody"} {
		i.Create("default", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	i.Create("", &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "headwater-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "scraper"}},
	})
	for token, want := range map[string]int{
		i.token("default", "scraper"): http.StatusOK, i.token("default", "nobody"): http.StatusForbidden,
		"made-up": http.StatusUnauthorized, "": http.StatusUnauthorized,
	} {
		i.Eventually(func(ctx context.Context) error {
			status, body, err := i.scrapeOverTLS(ctx, h, token)
			return errors.Join(err, lab.ErrorIf((status != want || strings.Contains(body, "headwater_build_info") != (want == http.StatusOK)), "status %d, want %d", status, want))
		})
	}
}

// scrapeOverTLS verifies the certificate as the chart has Prometheus do it: with the
// CA in the Secret of the webhook's certificate.
func (i *installation) scrapeOverTLS(ctx context.Context, h *lab.Headwater, token string) (status int, body string, err error) {
	secret, err := i.Admin.CoreV1().Secrets(lab.Namespace).Get(ctx, "headwater-webhook-tls", metav1.GetOptions{})
	if err != nil {
		return 0, "", err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return 0, "", errors.New("the Secret has no CA")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Replace(h.MetricsURL, "http:", "https:", 1)+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}
