package workload_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func controlledBy(apiVersion, kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &yes}}
}

func TestKeptWorkloadIsStripped(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Env: []corev1.EnvVar{reloadtest.SecretEnv("s", "k")}}}}}
	meta := metav1.ObjectMeta{
		Namespace: "ns", Name: "w", UID: "u", ResourceVersion: "7",
		Labels:        map[string]string{"app": "w"},
		Annotations:   map[string]string{mark.Baseline: "b", "kubectl.kubernetes.io/last-applied-configuration": "{…}"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
	}
	want := &workload.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "w", UID: "u", ResourceVersion: "7",
			Labels: map[string]string{"app": "w"}, Annotations: map[string]string{mark.Baseline: "b"},
		},
		References: []refs.Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.Env, Containers: []string{"app"}}},
	}
	for kind, obj := range map[kinds.Kind]any{
		kinds.KindDeployment:  &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}},
		kinds.KindStatefulSet: &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template}},
		kinds.KindDaemonSet:   &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}},
		kinds.KindCronJob: &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}},
		}},
	} {
		kept, err := workload.KeepRolling(obj, workload.ActedOn)
		require.NoError(t, err)
		want.Kind, want.Rollout = kind, kept.Rollout
		require.Equal(t, want, kept)
	}
	_, err := workload.KeepRolling(&corev1.Pod{}, workload.ActedOn)
	require.Error(t, err)
}

func TestWishesOnThePodTemplateCountUnlessTheWorkloadHasItsOwn(t *testing.T) {
	for sentence, test := range map[string]struct{ own, template, want reloadtest.Notes }{
		"none":                                   {nil, nil, nil},
		"those of the workload":                  {reloadtest.Notes{mark.Reload: "Off"}, nil, reloadtest.Notes{mark.Reload: "Off"}},
		"those of the template":                  {nil, reloadtest.Notes{mark.Reload: "Off"}, reloadtest.Notes{mark.Reload: "Off"}},
		"of both those of the workload":          {reloadtest.Notes{mark.Reload: "Auto"}, reloadtest.Notes{mark.Reload: "Off"}, reloadtest.Notes{mark.Reload: "Auto"}},
		"each by itself":                         {reloadtest.Notes{mark.Reload: "Auto"}, reloadtest.Notes{mark.ReloadKeys: "k"}, reloadtest.Notes{mark.Reload: "Auto", mark.ReloadKeys: "k"}},
		"what is listed there":                   {nil, reloadtest.Notes{mark.ReloadOn: "Secret/s"}, reloadtest.Notes{mark.ReloadOn: "Secret/s"}},
		"but not what Headwater writes there":    {nil, reloadtest.Notes{mark.RestartedFor: "b", mark.Baseline: "b"}, nil},
		"nor what is nobody's business out here": {nil, reloadtest.Notes{"example.com/x": "y"}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			deployment := reloadtest.Web()
			deployment.Annotations, deployment.Spec.Template.Annotations = test.own, test.template
			kept, err := workload.KeepRolling(deployment, workload.ActedOn)
			require.NoError(t, err)
			require.Equal(t, map[string]string(test.want), kept.Annotations)
			listed := slices.ContainsFunc(kept.References, func(r refs.Reference) bool { return r.Mode == refs.Listed })
			require.Equal(t, test.want[mark.ReloadOn] != "", listed)
			require.Equal(t, map[string]string(test.own), deployment.Annotations, "what a cache holds is not modified")

			app, err := workload.KeepCustom(appInfo(), workload.ActedOn)(&unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "app", "annotations": anyOf(test.own)},
				"spec":     map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": anyOf(test.template)}}},
			}})
			require.NoError(t, err)
			require.Equal(t, map[string]string(test.want), app.Annotations)
		})
	}
}

// anyOf are annotations as they are in an object of any kind.
func anyOf(annotations reloadtest.Notes) map[string]any {
	all := map[string]any{}
	for key, value := range annotations {
		all[key] = value
	}
	return all
}

func TestKeptPodWithoutReferencesIsNextToNothing(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", UID: "u", ResourceVersion: "7",
			Labels: map[string]string{"app": "p"}, OwnerReferences: controlledBy("apps/v1", "DaemonSet", "d"),
		},
		Spec: corev1.PodSpec{
			NodeName: "n",
			Volumes: []corev1.Volume{reloadtest.ProjectedVolume("kube-api-access", corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
			}})},
			Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "kube-api-access"}),
		},
	}
	kept, err := workload.KeepPod(pod, workload.ActedOn)
	require.NoError(t, err)
	require.Equal(t, &workload.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", ResourceVersion: "7"}}, kept)
	_, err = workload.KeepPod(&corev1.Secret{}, workload.ActedOn)
	require.Error(t, err)
}

func TestOwnerOfAPod(t *testing.T) {
	tests := map[string]struct {
		owners      []metav1.OwnerReference
		hash        string
		labels      map[string]string
		annotations map[string]string
		kind        kinds.Kind
		name        string
	}{
		"a bare pod has none":               {},
		"a StatefulSet":                     {owners: controlledBy("apps/v1", "StatefulSet", "s"), kind: kinds.KindStatefulSet, name: "s"},
		"a DaemonSet":                       {owners: controlledBy("apps/v1", "DaemonSet", "d"), kind: kinds.KindDaemonSet, name: "d"},
		"a Deployment, by its ReplicaSet":   {owners: controlledBy("apps/v1", "ReplicaSet", "web-5d9"), hash: "5d9", kind: kinds.KindDeployment, name: "web"},
		"a ReplicaSet of its own":           {owners: controlledBy("apps/v1", "ReplicaSet", "web-")},
		"a ReplicaSet of another hash":      {owners: controlledBy("apps/v1", "ReplicaSet", "web-5d9"), hash: "6e0"},
		"a Job, which is no workload":       {owners: controlledBy("batch/v1", "Job", "j"), kind: "Job.batch", name: "j"},
		"a Job of another name with a dash": {owners: controlledBy("batch/v1", "Job", "j-2b"), kind: "Job.batch", name: "j-2b"},
		"a CronJob, by its Job":             {owners: controlledBy("batch/v1", "Job", "night-29401920"), kind: kinds.KindCronJob, name: "night"},
		"a kind of the same name is not it": {owners: controlledBy("apps.kruise.io/v1", "StatefulSet", "s"), kind: "StatefulSet.apps.kruise.io", name: "s"},
		"a Rollout, by its ReplicaSet": {
			owners: controlledBy("apps/v1", "ReplicaSet", "web-5d9"), labels: map[string]string{"rollouts-pod-template-hash": "5d9"}, kind: kinds.KindRollout, name: "web",
		},
		"a DeploymentConfig, by what it writes": {
			owners:      controlledBy("v1", "ReplicationController", "web-3"),
			annotations: map[string]string{"openshift.io/deployment-config.name": "web"}, kind: kinds.KindDeploymentConfig, name: "web",
		},
		"a ReplicationController of its own": {owners: controlledBy("v1", "ReplicationController", "web-3")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: harnessEnv(), ObjectMeta: metav1.ObjectMeta{
				OwnerReferences: test.owners, Labels: test.labels, Annotations: test.annotations,
			}}
			if test.hash != "" {
				pod.Labels = map[string]string{"pod-template-hash": test.hash}
			}
			kept, err := workload.KeepPod(pod, workload.ActedOn)
			require.NoError(t, err)
			require.Equal(t, test.kind, kept.OwnerKind)
			require.Equal(t, test.name, kept.OwnerName)
		})
	}
}

func TestStatusIsOfNoInterest(t *testing.T) {
	w := func() *workload.Workload {
		return &workload.Workload{
			ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "1", Labels: map[string]string{"a": "1"}},
			References: []refs.Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.Env, Containers: []string{"app"}}},
		}
	}
	for name, edit := range map[string]func(*workload.Workload){
		"a label":            func(w *workload.Workload) { w.Labels = nil },
		"an annotation":      func(w *workload.Workload) { w.Annotations = map[string]string{mark.Reload: "Off"} },
		"a key":              func(w *workload.Workload) { w.References[0].Keys = nil },
		"a reference":        func(w *workload.Workload) { w.References = nil },
		"another UID":        func(w *workload.Workload) { w.UID = "v" },
		"another owner":      func(w *workload.Workload) { w.Owner = &workload.Owner{Kind: "App.example.com"} },
		"the stamp":          func(w *workload.Workload) { w.Stamp = 1 },
		"the template":       func(w *workload.Workload) { w.NoTemplate = true },
		"whose template":     func(w *workload.Workload) { w.TemplateFrom = &kinds.Key{Name: "w"} },
		"that it is deleted": func(w *workload.Workload) { w.DeletionTimestamp = &metav1.Time{} },
	} {
		changed := w()
		edit(changed)
		require.False(t, w().SameInputs(changed), name)
	}
	updated := w()
	updated.ResourceVersion = "2"
	require.True(t, w().SameInputs(updated))
}
