package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/headwater-k8s/headwater/test/lab"
)

func kubeconfigFor(t *testing.T, server string, ca []byte) string {
	t.Helper()
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["u"] = &api.AuthInfo{Token: "token"}
	config.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

func TestBadSurroundingsEndInOneClearLine(t *testing.T) {
	e := newEnv(t)
	for sentence, test := range map[string]struct {
		change func(*testing.T, *lab.Options)
		want   []string
	}{
		"the kubeconfig does not exist": {
			change: func(_ *testing.T, o *lab.Options) { o.Kubeconfig = "/nowhere/kubeconfig" },
			want:   []string{"kubeconfig", "/nowhere/kubeconfig", "does not exist"},
		},
		"the kubeconfig is not one": {
			change: func(t *testing.T, o *lab.Options) {
				o.Kubeconfig = filepath.Join(t.TempDir(), "bad")
				require.NoError(t, os.WriteFile(o.Kubeconfig, []byte("{{{"), 0o600))
			},
			want: []string{"kubeconfig"},
		},
		"there is no cluster at all": {
			change: func(t *testing.T, o *lab.Options) { o.Kubeconfig = ""; o.Env = []string{"HOME=" + t.TempDir()} },
			want:   []string{"no cluster to talk to", "--kubeconfig"},
		},
		"the API server is not trusted": {
			change: func(t *testing.T, o *lab.Options) {
				server := httptest.NewTLSServer(http.NotFoundHandler())
				t.Cleanup(server.Close)
				o.Kubeconfig = kubeconfigFor(t, server.URL, e.Cluster.Config().CAData)
			},
			want: []string{"is not trusted", "certificate-authority"},
		},
		"the credentials are not accepted": {
			change: func(t *testing.T, o *lab.Options) {
				o.Kubeconfig = kubeconfigFor(t, e.Cluster.Config().Host, e.Cluster.Config().CAData)
			},
			want: []string{"does not accept the credentials"},
		},
		"the metrics port is in use": {
			change: func(t *testing.T, o *lab.Options) { o.Args = []string{"--metrics-address", occupied(t)} },
			want:   []string{"metrics address", "is in use", "--metrics-address"},
		},
		"the webhook port is in use": {
			change: func(t *testing.T, o *lab.Options) {
				o.Config = e.ConfigFile(lab.OneRule("bad") + "  protect: {}\n")
				o.Args = []string{"--webhook-address", occupied(t)}
			},
			want: []string{"webhook address", "is in use", "--webhook-address"},
		},
		"the configuration does not exist": {
			change: func(_ *testing.T, o *lab.Options) { o.Config = "/nowhere/headwater.yaml" },
			want:   []string{"/nowhere/headwater.yaml"},
		},
		"the configuration is not valid": {
			change: func(t *testing.T, o *lab.Options) {
				o.Config = filepath.Join(t.TempDir(), "bad.yaml")
				require.NoError(t, os.WriteFile(o.Config, []byte("apiVersion: headwater.dev/v1alpha1\nkind: Config\nruls: []\n"), 0o600))
			},
			want: []string{"bad.yaml:3", "ruls", "rules"},
		},
		"a setting makes no sense": {
			change: func(_ *testing.T, o *lab.Options) { o.Env = []string{"HEADWATER_LOG_FORMAT=xml"} },
			want:   []string{"xml", "json or console"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := e.Options(lab.OneRule("bad"))
			test.change(t, &o)
			line := lab.Ends(t, e.Launch(o))
			for _, want := range test.want {
				require.Contains(t, line, want)
			}
		})
	}
}

func occupied(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestMissingPermissionsAreAllNamedBeforeWorkStarts(t *testing.T) {
	e := newEnv(t)
	o := e.Options(lab.OneRule("bad"))
	e.Create("", &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "weak"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: lab.Namespace, Name: "weak"}},
	})
	require.NoError(t, e.Cluster.KubeconfigFor(o.Kubeconfig, "system:serviceaccount:headwater-system:weak"))
	told := lab.Ends(t, e.Launch(o))
	require.Contains(t, told, "missing permissions: bind ClusterRole headwater to system:serviceaccount:headwater-system:weak")
	require.Contains(t, told, "\n  secrets cluster-wide: create, delete, get, list, update, watch (to keep clones right)")
	require.Contains(t, told, "\n  deployments.apps cluster-wide: patch (to restart consumers)")
	require.Contains(t, told, "\n  leases.coordination.k8s.io/headwater in namespace headwater-system: ")
	require.Contains(t, told, "\n  configmaps cluster-wide: create, delete, update (to keep clones right)", "what the role grants is not missing")
}

func TestAnUnreachableServerIsWaitedFor(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("unreached-src", "unreached-late")
	e.Secret("unreached-src", "shared", map[string]string{"k": "v"})
	o := e.Options(lab.OneRule("unreached"))
	address := occupied(t) // nobody answers here, and nobody else can listen
	real := o.Kubeconfig
	o.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	config, err := clientcmd.LoadFromFile(real)
	require.NoError(t, err)
	for _, c := range config.Clusters {
		c.Server = "https://" + address
	}
	require.NoError(t, clientcmd.WriteToFile(*config, o.Kubeconfig))
	h := e.Launch(o)
	e.Eventually(func(ctx context.Context) error {
		log, err := h.Log()
		return errors.Join(err, lab.ErrorIf(!strings.Contains(log, "cannot be reached"), "not told yet"))
	})
	require.Error(t, notReady(t, h))
	require.NoError(t, h.Failure(), "must keep trying")
}

func notReady(t *testing.T, h *lab.Headwater) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return h.Ready(ctx)
}

func TestItsOwnNamespaceIsWaitedFor(t *testing.T) {
	e := newEnv(t)
	o := e.Options(lab.OneRule("own"))
	o.Args = []string{"--headwater-namespace", "its-own"}
	require.NoError(t, e.Cluster.KubeconfigFor(o.Kubeconfig, "admin", "system:masters"))
	h := e.Launch(o)
	logs(e, h, 1, "namespace its-own, Headwater's own, does not exist")
	e.Namespace("its-own")
	require.NoError(t, h.Ready(t.Context()))
}

// logs waits until h has logged text at least so many times.
func logs(e *env, h *lab.Headwater, times int, text string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		log, err := h.Log()
		if found := strings.Count(log, text); err == nil && found < times {
			err = fmt.Errorf("logged %d times: %s", found, text)
		}
		return err
	})
}

func TestWhatIsHardlyMeantIsLoggedAtTheStartAndOnAChange(t *testing.T) {
	e := newEnv(t)
	rule := strings.ReplaceAll(lab.OneRule("meant"), "meant-*", "kube-*")
	h := e.Start(rule)
	const note = `"configuration valid, but probably not intended: the rule clones nowhere: exclude (kube-*)`
	logs(e, h, 1, note)
	e.ConfigFile("# moved\n" + rule)
	logs(e, h, 2, note)
	e.ConfigFile(lab.OneRule("meant"))
	logs(e, h, 2, "configuration reloaded")
	log, err := h.Log()
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(log, note))
}

func TestTheLogSaysWhatRunsAndWhatTheFirstSyncHasDone(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("firstsync-src", "firstsync-a", "firstsync-b")
	e.Secret("firstsync-src", "shared", map[string]string{"k": "v"})
	h := e.Start(lab.OneRule("firstsync"))
	const finished = `"msg":"first sync finished","clones":%s,"namespaces":%s,"written":%d,"failed":0,"took"`
	const some = `[1-9]\d*` // other tests have left clones as well
	logs(e, h, 1, "first sync finished")
	log, err := h.Log()
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(finished, some, some, 2), log)
	require.Regexp(t, `"msg":"Headwater starts","version":"[^"]+","commit":"[^"]+","configuration":"[^"]+headwater.yaml","rules":1`, log)
	require.NotContains(t, log, `"logger":"fx"`)
	h.Stop()
	h = e.Start(lab.OneRule("firstsync"))
	logs(e, h, 1, "first sync finished")
	log, err = h.Log()
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(finished, some, some, 0), log)
}

func TestOnlyOneReplicaWritesAndAnotherTakesOver(t *testing.T) {
	e := newEnv(t)
	e.StageOf("replica", map[string]string{"k": "v"})
	first := e.Start(lab.OneRule("replica"))
	require.NoError(t, first.Idle(t.Context()))
	e.Webhook = "127.0.0.1:0" // the first has the address, and no rule protects
	second := e.Start(lab.OneRule("replica"))
	leading, err := second.Metric(t.Context(), "headwater_leader", nil)
	require.NoError(t, err)
	require.Zero(t, leading)
	e.HasClone("replica-a", "shared", map[string]string{"k": "v"})
	first.Stop()
	require.Zero(t, first.ExitCode(), "SIGTERM is a graceful end")
	logs(e, first, 1, `"msg":"Headwater has stopped"`)
	e.Edit("replica-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	e.HasClone("replica-a", "shared", map[string]string{"k": "v2"})
	require.NoError(t, second.Idle(t.Context()))
}

func TestASecondSignalEndsAStopThatTakesLong(t *testing.T) {
	e := newEnv(t)
	o := e.Options(lab.OneRule("signal") + "  protect: {}\n")
	o.Args = []string{lab.Alone, "--webhook-drain", "1h"}
	h := e.Launch(o)
	require.NoError(t, h.Ready(t.Context()))
	require.NoError(t, h.Interrupt())
	logs(e, h, 1, "webhook keeps serving for 1h0m0s (--webhook-drain)")
	require.NoError(t, h.Interrupt())
	require.Contains(t, lab.Ends(t, h), "told a second time to stop: ended at once")
	require.Equal(t, 1, h.ExitCode())
}

func TestALostLeaseEndsTheProcess(t *testing.T) {
	e := newEnv(t)
	h := e.Start(lab.OneRule("lease"))
	require.NoError(t, h.Idle(t.Context()))
	leases := e.Admin.CoordinationV1().Leases(lab.Namespace)
	thief := "somebody-else"
	e.Eventually(func(ctx context.Context) error {
		lease, err := leases.Get(ctx, "headwater", metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.AcquireTime = &thief, &now, &now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	t.Cleanup(func() {
		_ = leases.Delete(context.WithoutCancel(t.Context()), "headwater", metav1.DeleteOptions{})
	})
	require.Contains(t, lab.Ends(t, h), "lost the leader lease")
}

func TestAConfigChangeTakesEffectWithoutARestart(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("change-src", "change-a", "change-b")
	data := map[string]string{"k": "v"}
	e.Secret("change-src", "shared", data)
	only := func(namespace string) string {
		return fmt.Sprintf(`
- name: change
  source: {kind: Secret, namespace: change-src, name: shared}
  sync: {namespaces: {include: [%s]}}
`, namespace)
	}
	h := e.Start(only("change-a"))
	e.HasClone("change-a", "shared", data)
	e.ConfigFile(only("change-b"))
	e.HasClone("change-b", "shared", data)
	e.HasNone("change-a", "shared")

	require.NoError(t, os.WriteFile(filepath.Join(e.Dir, "headwater.yaml"), []byte("kind: Nonsense\n"), 0o600))
	e.Eventually(func(ctx context.Context) error {
		valid, err := h.Metric(ctx, "headwater_config_valid", nil)
		return errors.Join(err, lab.ErrorIf(valid != 0, "the bad file was not noticed"))
	})
	e.HasEvent(lab.Namespace, lab.Namespace, "ConfigInvalid")
	require.NoError(t, e.Admin.CoreV1().Secrets("change-b").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.HasClone("change-b", "shared", data) // the last good one stays in force

	// A source in a namespace that nobody watched so far.
	e.Secret(e.Namespace("change-other"), "second", data)
	e.ConfigFile(only("change-b") + `
- name: second
  source: {kind: Secret, namespace: change-other, name: second}
  sync: {namespaces: {include: [change-a]}}
`)
	e.HasClone("change-a", "second", data)
}

// Invariant 11: no secret byte reaches a log, a metric, an Event or a message.
func TestNoSecretByteLeaves(t *testing.T) {
	const canary = "c4n4ry-v4lue"
	e := newEnv(t)
	e.Namespaces("canary-src", "canary-a", "canary-b")
	e.Secret("canary-src", "shared", map[string]string{"k": canary})
	e.Secret("canary-b", "shared", map[string]string{"k": canary + "-theirs"})
	h := e.Start(lab.Rule("canary", `sync: {namespaces: {include: ["canary-*"]}}`, "protect: {}", "reload: {}"))
	e.HasClone("canary-a", "shared", map[string]string{"k": canary})
	e.HasEvent("canary-b", "shared", "Conflict")
	denied := denialOf(e, "canary-src", "shared", canary+"-new")
	e.Edit("canary-a", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte(canary + "-edited") })
	e.HasClone("canary-a", "shared", map[string]string{"k": canary})

	log, err := h.Log()
	require.NoError(t, err)
	events := lab.List(t, e.Admin.EventsV1().Events(metav1.NamespaceAll).List, metav1.ListOptions{})
	told, err := json.Marshal(events)
	require.NoError(t, err)
	metrics, err := h.Metrics(t.Context())
	require.NoError(t, err)
	for place, text := range map[string]string{"log": log, "events": string(told), "metrics": metrics, "denial": denied} {
		require.NotEmpty(t, text, place)
		require.NotContains(t, text, canary, place)
		require.NotContains(t, text, "YzRuNHJ5", place+" (base64)")
	}
}

// denialOf has somebody who may edit Secrets, but is not exempt, try to.
func denialOf(e *env, namespace, name, value string) string {
	e.Helper()
	e.Grant(namespace, "edit", "editor")
	client := e.Client("editor")
	var denial string
	e.Eventually(func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"stringData":{"k":%q}}`, value)
		_, err := client.CoreV1().Secrets(namespace).Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			return errors.New("allowed")
		case strings.Contains(err.Error(), "cannot patch resource"):
			return fmt.Errorf("not granted yet: %w", err)
		}
		denial = err.Error()
		return nil
	})
	return denial
}
