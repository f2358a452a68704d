package optin

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

const honourBoth = "reload: {compatibility: [Reloader, Wave], minInterval: 0s}\n"

// Taking over from another tool is a first sight: the stamps that it left on
// pod templates are as good as any.
func TestAnnotationsOfOtherToolsAreHonoured(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("compat")
	e.Sections = honourBoth
	for _, name := range []string{"own", "excluded", "searched", "pattern-1", "beside"} {
		e.Secret(namespace, name, map[string]string{"k": "1"})
	}
	all := lab.ByEnvFrom("own")
	for _, name := range []string{"excluded", "searched"} {
		all.Containers[0].EnvFrom = append(all.Containers[0].EnvFrom, lab.ByEnvFrom(name).Containers[0].EnvFrom...)
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
	byTemplate := lab.Deployment(namespace, "template", 0, lab.ByVolume("own"))
	byTemplate.Spec.Template.Annotations = map[string]string{
		"reloader.stakater.com/auto": "true", "reloader.stakater.com/last-reloaded-from": "{}", "wave.pusher.com/config-hash": "0123",
	}
	e.Create(namespace, byTemplate)
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
	require.Regexp(t, `Secret/compat-a/searched +EnvFrom +app +- +Nothing +Untracked +the object has the annotation reloader.stakater.com/ignore`, out)
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

// configMap makes a ConfigMap whose key k has that value, or edits it.
func (e *env) configMap(namespace, name, value string, annotations map[string]string) {
	e.Helper()
	of := applycorev1.ConfigMap(name, namespace).WithData(map[string]string{"k": value}).WithAnnotations(annotations)
	_, err := e.Admin.CoreV1().ConfigMaps(namespace).Apply(e.Context(), of, metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(e, err)
}

// byBoth reads the Secret own and the ConfigMap settings into its environment.
func byBoth() corev1.PodSpec {
	spec := lab.ByEnvFrom("own")
	spec.Containers[0].EnvFrom = append(spec.Containers[0].EnvFrom, corev1.EnvFromSource{
		ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
	})
	return spec
}

func TestAnnotationsOfOtherToolsTellSecretsFromConfigMaps(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("typed")
	e.Sections = honourBoth
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	match := map[string]string{"reloader.stakater.com/match": "true"}
	e.configMap(namespace, "settings", "1", match)
	e.configMap(namespace, "beside", "1", nil)
	for name, annotations := range map[string]map[string]string{
		"auto":         {"reloader.stakater.com/auto": "true"},
		"auto-configs": {"configmap.reloader.stakater.com/auto": "true"},
		"auto-secrets": {"secret.reloader.stakater.com/auto": "true"},
		"excludes":     {"reloader.stakater.com/auto": "true", "configmaps.exclude.reloader.stakater.com/reload": "settings"},
		"searches":     {"reloader.stakater.com/search": "true"},
		"lists":        {"configmap.reloader.stakater.com/reload": "other, beside"},
		"lists-secret": {"secret.reloader.stakater.com/reload": "beside, own"},
		"waves":        {"wave.pusher.com/update-on-config-change": "true"},
		"waves-extra":  {"wave.pusher.com/update-on-config-change": "true", "wave.pusher.com/extra-configmaps": "beside"},
	} {
		e.Deployment(namespace, name, byBoth(), annotations)
	}
	h := e.Start(syncRule("typed"))
	before := e.Adopted(h, namespace, "auto", "auto-configs", "auto-secrets", "excludes", "searches", "lists", "lists-secret", "waves", "waves-extra")

	e.SetKey(namespace, "own", "k", "2")
	e.Restarted(namespace, before,
		"Deployment/auto", "Deployment/auto-secrets", "Deployment/excludes", "Deployment/lists-secret", "Deployment/waves", "Deployment/waves-extra")
	before = e.Stamps(namespace)
	e.configMap(namespace, "settings", "2", match)
	e.Restarted(namespace, before, "Deployment/auto", "Deployment/auto-configs", "Deployment/searches", "Deployment/waves", "Deployment/waves-extra")
	before = e.Stamps(namespace)
	e.configMap(namespace, "beside", "2", nil)
	e.Restarted(namespace, before, "Deployment/lists", "Deployment/waves-extra")
}

// left are Deployments as another tool leaves them that has restarted them.
func left(namespace string) map[string]*appsv1.Deployment {
	const sum = "356a192b7913b04c54574d18c28d46e6395428ab"
	all := map[string]*appsv1.Deployment{}
	for name, annotation := range map[string]string{
		"by-variable": mark.ReloaderAuto, "by-annotation": mark.ReloaderAuto, "by-hash": mark.WaveUpdate,
	} {
		all[name] = lab.Deployment(namespace, name, 0, lab.ByEnvFrom("own"))
		all[name].Annotations = map[string]string{annotation: "true"}
	}
	all["by-variable"].Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "STAKATER_OWN_SECRET", Value: sum}}
	all["by-annotation"].Spec.Template.Annotations = map[string]string{
		"reloader.stakater.com/last-reloaded-from": `{"type":"SECRET","name":"own","hash":"` + sum + `"}`,
	}
	all["by-hash"].Spec.Template.Annotations = map[string]string{"wave.pusher.com/config-hash": sum}
	return all
}

func TestTakingOverFromAnotherToolRestartsNothing(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("taken")
	e.Sections = honourBoth
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	deployments := e.Admin.AppsV1().Deployments(namespace)
	made := map[string]*appsv1.Deployment{}
	for name, deployment := range left(namespace) {
		created, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{})
		require.NoError(t, err)
		made[name] = created
	}
	untouched := func() {
		t.Helper()
		for name := range made {
			now := lab.Read(t, deployments.Get, name)
			delete(now.Spec.Template.Annotations, mark.RestartedFor)
			delete(now.Spec.Template.Annotations, mark.RestartedAfter)
			require.True(t, equality.Semantic.DeepEqual(made[name].Spec, now.Spec), name)
		}
	}
	h := e.Start(syncRule("taken"))
	before := e.Adopted(h, namespace, slices.Collect(maps.Keys(made))...)
	untouched()
	e.SetKey(namespace, "own", "k", "2")
	e.Restarted(namespace, before, "Deployment/by-annotation", "Deployment/by-hash", "Deployment/by-variable")
	untouched()
}

// tag puts an annotation on a Secret.
func (e *env) tag(namespace, name, annotation string) {
	e.Helper()
	e.Edit(namespace, name, func(s *corev1.Secret) { s.Annotations = map[string]string{annotation: "true"} })
}

func TestAnnotationsOfOtherToolsMeanNothingUnlessTheFileSaysSo(t *testing.T) {
	e := newEnv(t)
	e.Sections = lab.Unpaced
	namespace := e.Stage("incompat")
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	e.Deployment(namespace, "auto", lab.ByEnvFrom("own"), map[string]string{"reloader.stakater.com/auto": "true"})
	e.Deployment(namespace, "waves", lab.ByEnvFrom("own"), map[string]string{"wave.pusher.com/update-on-config-change": "true"})
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

// bySecretsStore mounts a SecretProviderClass beside reading Secret own.
func bySecretsStore() corev1.PodSpec {
	spec := lab.ByEnvFrom("own")
	spec.Volumes = []corev1.Volume{{Name: "vault", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: "secrets-store.csi.k8s.io", VolumeAttributes: map[string]string{"secretProviderClass": "vault"},
	}}}}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "vault", MountPath: "/vault"}}
	return spec
}

func TestWhatIsNotHonouredOfReloaderIsReported(t *testing.T) {
	e := newEnv(t)
	e.Node("unhonoured-node")
	namespace := e.Stage("unhonoured")
	e.Sections = honourBoth
	e.Secret(namespace, "own", map[string]string{"k": "1"})
	auto := map[string]string{mark.ReloaderAuto: "true"}
	e.Deployment(namespace, "auto", bySecretsStore(), auto)
	named := lab.Deployment(namespace, "named", 0, bySecretsStore())
	named.Spec.Template.Annotations = map[string]string{mark.ReloaderClasses: "vault"}
	e.Create(namespace, named)
	job := corev1.PodTemplateSpec{Spec: lab.ByEnvFrom("own")}
	job.Spec.NodeName, job.Spec.RestartPolicy = "unhonoured-node", corev1.RestartPolicyNever
	for name, annotations := range map[string]map[string]string{"recreated": auto, "plain": nil} {
		e.Create(namespace, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: batchv1.JobSpec{Template: job},
		})
	}
	h := e.Start(syncRule("unhonoured"))
	require.Contains(t, e.HasEvent(namespace, "auto", "UnknownReload"), mark.ReloaderAuto+" is ignored in part: Headwater does not see what a Secrets Store CSI driver mounts: SecretProviderClass vault")
	require.Contains(t, e.HasEvent(namespace, "named", "UnknownReload"), mark.ReloaderClasses+" is ignored: Headwater does not see")
	require.Contains(t, e.HasEvent(namespace, "recreated", "UnknownReload"), "Headwater does not recreate Jobs, as Reloader does")
	e.Settled(h)
	events := lab.List(t, e.Admin.EventsV1().Events(namespace).List, metav1.ListOptions{FieldSelector: "reason=UnknownReload"})
	require.Len(t, events.Items, 3)
	out, problem, exit := e.Command(e.Viewer("unhonoured-viewer"), "explain", "deploy/unhonoured-a/auto", "--config", e.ConfigFile(syncRule("unhonoured")))
	require.Zero(t, exit, problem)
	require.Contains(t, out, "ignored: "+mark.ReloaderAuto+": Headwater does not see what a Secrets Store CSI driver mounts")
}
