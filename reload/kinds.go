package reload

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/rules"
)

// Kind is a kind of consumer: of those that Headwater knows from the start the
// plain name, of any other the name, a dot and its API group.
type Kind string

// The kinds of consumers that are known from the start. All but KindPod are
// workloads: they have a pod template, and are restarted by a stamp on it. The
// stamp on a CronJob runs nothing: it says what the jobs from then on read.
const (
	KindDeployment  Kind = "Deployment"
	KindStatefulSet Kind = "StatefulSet"
	KindDaemonSet   Kind = "DaemonSet"
	KindCronJob     Kind = "CronJob"
	KindPod         Kind = "Pod"

	// KindRollout is the Rollout of Argo Rollouts.
	KindRollout Kind = "Rollout.argoproj.io"
	// KindDeploymentConfig is the DeploymentConfig of OpenShift.
	KindDeploymentConfig Kind = "DeploymentConfig.apps.openshift.io"
)

// KindOf names a kind of consumer.
func KindOf(kind schema.GroupKind) Kind {
	for _, form := range typedForms {
		if form.GroupKind() == kind {
			return Kind(kind.Kind)
		}
	}
	return Kind(kind.String())
}

// groupKind is the inverse of KindOf.
func (k Kind) groupKind() schema.GroupKind {
	if form, typed := typedForms[k]; typed {
		return form.GroupKind()
	}
	return schema.ParseGroupKind(string(k))
}

// Form says what the objects of one kind look like to Headwater.
type Form struct {
	// GroupVersionKind is how they are read and written.
	schema.GroupVersionKind
	// Resource is the plural name; of a kind that is not known from the start it is
	// a guess, and the API server is asked when it serves the kind.
	Resource string
	// Template is the path to the pod template. Without one the stamp goes on
	// the object itself.
	Template []string
}

// kind names the kind of the objects.
func (f *Form) kind() Kind { return KindOf(f.GroupKind()) }

func podTemplate() []string { return []string{"spec", "template"} }

// typedForms are those of the kinds that every cluster has. They are never
// modified.
var typedForms = map[Kind]*Form{
	KindDeployment:  {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Resource: "deployments", Template: podTemplate()},
	KindStatefulSet: {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Resource: "statefulsets", Template: podTemplate()},
	KindDaemonSet:   {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Resource: "daemonsets", Template: podTemplate()},
	KindCronJob:     {GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("CronJob"), Resource: "cronjobs", Template: []string{"spec", "jobTemplate", "spec", "template"}},
	KindPod:         {GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: "pods"},
}

// knownForms are those of the kinds that are known from the start, but that a
// cluster may lack.
func knownForms() []*Form {
	return []*Form{
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
			Resource:         "rollouts", Template: podTemplate(),
		},
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "apps.openshift.io", Version: "v1", Kind: "DeploymentConfig"},
			Resource:         "deploymentconfigs", Template: podTemplate(),
		},
	}
}

// optionalForms are those of all workloads that a cluster may lack, the
// declared ones included.
func optionalForms(declared []WorkloadKind) []*Form {
	forms := knownForms()
	for _, kind := range declared {
		forms = append(forms, kind.form())
	}
	return forms
}

// shortKinds are what kubectl knows them by.
var shortKinds = map[string]Kind{
	"deploy": KindDeployment, "sts": KindStatefulSet, "ds": KindDaemonSet, "cj": KindCronJob, "po": KindPod,
	"ro": KindRollout, "dc": KindDeploymentConfig,
}

// ParseKind reads the kind of a consumer as people write it: its name or plural,
// in any case, with its API group where that is not plain. Beside the kinds that
// are known from the start it may be a declared one, or one that the rules
// annotate.
func ParseKind(text string, settings Settings, set *rules.Set[Rule]) (Kind, error) {
	asked := strings.ToLower(text)
	if kind, known := shortKinds[asked]; known {
		return kind, nil
	}
	kinds := append(workloadKinds(), KindPod)
	for _, kind := range kinds {
		if singular := strings.ToLower(string(kind)); asked == singular || asked == singular+"s" {
			return kind, nil
		}
	}
	for _, form := range append(optionalForms(settings.Workloads), annotatedKinds(set)...) {
		if slices.Contains(form.names(), asked) {
			return form.kind(), nil
		}
		kinds = append(kinds, form.kind())
	}
	return "", fmt.Errorf("kind %q is none of %v", text, kinds)
}

// names are what people may call the kind.
func (f *Form) names() []string {
	var names []string
	for _, name := range []string{strings.ToLower(f.Kind), f.Resource} {
		names = append(names, name, name+"."+f.Group)
	}
	return names
}
