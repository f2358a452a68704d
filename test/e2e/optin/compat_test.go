package optin

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

const honourBoth = "reload: {compatibility: [Reloader, Wave], minInterval: 0s}\n"

// Taking over from another tool is a first sight: the stamps that it left on
// pod templates are as good as any.
func TestAnnotationsOfOtherToolsAreHonoured(t *testing.T) {
	e := newEnv(t)
	e.Sections = e2e.Unpaced
	namespace := e.Stage("compat")
	e.Sections = honourBoth
	for _, name := range []string{"own", "excluded", "searched", "pattern-1", "beside"} {
		e.Secret(namespace, name, map[string]string{"k": "1"})
	}
	all := harness.ByEnvFrom("own")
	for _, name := range []string{"excluded", "searched"} {
		all.Containers[0].EnvFrom = append(all.Containers[0].EnvFrom, harness.ByEnvFrom(name).Containers[0].EnvFrom...)
	}
	for name, annotations := range map[string]map[string]string{
		"auto":    {"reloader.stakater.com/auto": "true", "secrets.exclude.reloader.stakater.com/reload": "excluded"},
		"search":  {"reloader.stakater.com/search": "true"},
		"named":   {"secret.reloader.stakater.com/reload": "excluded, pattern-.*"},
		"typed":   {"configmap.reloader.stakater.com/auto": "true"},
		"waves":   {"wave.pusher.com/update-on-config-change": "true", "wave.pusher.com/extra-secrets": "beside,compat-src/shared"},
		"ours":    {"reloader.stakater.com/auto": "true", mark.Reload: "Off"},
		"garbled": {"secret.reloader.stakater.com/reload": "("},
		"silent":  nil,
	} {
		e.Deployment(namespace, name, all, annotations)
	}
	byTemplate := harness.Deployment(namespace, "template", 0, harness.ByVolume("own"))
	byTemplate.Spec.Template.Annotations = map[string]string{
		"reloader.stakater.com/auto": "true", "reloader.stakater.com/last-reloaded-from": "{}", "wave.pusher.com/config-hash": "0123",
	}
	_, err := e.Admin.AppsV1().Deployments(namespace).Create(t.Context(), byTemplate, metav1.CreateOptions{})
	require.NoError(t, err)
	h := e.Start(syncRule("compat"))
	before := e.Adopted(h, namespace, "auto", "named", "waves", "template")
	require.Contains(t, e.HasEvent(namespace, "waves", "UnknownReload"), "another namespace")
	require.Contains(t, e.HasEvent(namespace, "garbled", "UnknownReload"), `"(" is neither a name nor a regular expression`)

	changes := func(secret string, want ...string) {
		t.Helper()
		e.SetKey(namespace, secret, "k", string(e.Get(namespace, secret).Data["k"])+"+")
		e.Restarted(namespace, before, want...)
		before = e.Stamps(namespace)
	}
	changes("own", "Deployment/auto", "Deployment/template", "Deployment/waves")
	changes("excluded", "Deployment/named", "Deployment/waves")
	changes("pattern-1", "Deployment/named")
	changes("beside", "Deployment/waves")
	e.Secret(namespace, "pattern-2", map[string]string{"k": "1"})
	e.Restarted(namespace, before) // first sight
	changes("pattern-2", "Deployment/named")

	e.tag(namespace, "searched", "reloader.stakater.com/match")
	e.Restarted(namespace, before)
	changes("searched", "Deployment/auto", "Deployment/search", "Deployment/waves")
	e.tag(namespace, "searched", "reloader.stakater.com/ignore")
	changes("searched", "Deployment/waves")
	e.Settled(h)
	out, problem, exit := e.Command(e.Viewer("compat-viewer"), "explain", "deploy/compat-a/auto", "--config", e.ConfigFile(syncRule("compat")))
	require.Zero(t, exit, problem)
	require.Regexp(t, `Secret/compat-a/excluded +EnvFrom +app +- +Nothing +Untracked +excluded by an annotation of Reloader`, out)
	require.Regexp(t, `Secret/compat-a/searched +EnvFrom +app +- +Nothing +Untracked +the object bears the annotation reloader.stakater.com/ignore`, out)
	require.Regexp(t, `Secret/compat-a/own +EnvFrom +app +annotation of Reloader +Restart +Current +a restart is asked for`, out)

	e.Eventually(func(ctx context.Context) error {
		template, err := e.Admin.AppsV1().Deployments(namespace).Get(ctx, "template", metav1.GetOptions{})
		if err == nil {
			require.Equal(t, "{}", template.Spec.Template.Annotations["reloader.stakater.com/last-reloaded-from"])
			require.Equal(t, "0123", template.Spec.Template.Annotations["wave.pusher.com/config-hash"])
		}
		return err
	})
}

// tag puts an annotation on a Secret.
func (e *env) tag(namespace, name, annotation string) {
	e.Helper()
	e.Edit(namespace, name, func(s *corev1.Secret) { s.Annotations = map[string]string{annotation: "true"} })
}

func TestAnnotationsOfOtherToolsMeanNothingUnlessTheFileSaysSo(t *testing.T) {
	e := newEnv(t)
	e.Sections = e2e.Unpaced
	namespace := e.Stage("incompat")
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	e.Deployment(namespace, "auto", harness.ByEnvFrom("own"), map[string]string{"reloader.stakater.com/auto": "true"})
	e.Deployment(namespace, "waves", harness.ByEnvFrom("own"), map[string]string{"wave.pusher.com/update-on-config-change": "true"})
	start := e.Cluster.Mark()
	h := e.Start(syncRule("incompat"))
	e.Settled(h)
	before := e.Stamps(namespace)
	e.SetKey(namespace, "own", "k", "2")
	e.Restarted(namespace, before)
	require.Empty(t, e.Reads(start, namespace))
	out, problem, exit := e.Command(e.Viewer("incompat-viewer"), "explain", "deploy/incompat-a/auto", "--config", e.ConfigFile(syncRule("incompat")))
	require.Zero(t, exit, problem)
	require.Contains(t, out, "ignored: annotations of Reloader: reload.compatibility does not name it")

	h.Stop()
	e.Sections = "reload: {compatibility: [Wave], minInterval: 0s}\n"
	h = e.Start(syncRule("incompat"))
	before = e.Adopted(h, namespace, "waves")
	e.SetKey(namespace, "own", "k", "3")
	e.Restarted(namespace, before, "Deployment/waves")
}
