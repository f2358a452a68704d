package kinds

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WorkloadKinds is the order in which workloads are listed.
func WorkloadKinds() []Kind {
	return []Kind{KindDeployment, KindStatefulSet, KindDaemonSet, KindCronJob}
}

// KindJob is no kind of consumer: the pods of Jobs are consumers. A Job is read to
// see whether its owner counts on Reloader, which deletes and recreates it.
const KindJob Kind = "Job.batch"

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

// Of names a kind of consumer.
func Of(kind schema.GroupKind) Kind {
	for _, form := range Typed {
		if form.GroupKind() == kind {
			return Kind(kind.Kind)
		}
	}
	return Kind(kind.String())
}

// GroupKind is the inverse of Of.
func (k Kind) GroupKind() schema.GroupKind {
	if form, typed := Typed[k]; typed {
		return form.GroupKind()
	}
	return schema.ParseGroupKind(string(k))
}

// Info says what the objects of one kind look like to Headwater.
type Info struct {
	// GroupVersionKind is how they are read and written.
	schema.GroupVersionKind
	// Resource is the plural name; of a kind that is not known from the start it is
	// a guess, and the API server is asked when it serves the kind.
	Resource string
	// Template is the path to the pod template. Without one the stamp goes on
	// the object itself.
	Template []string
}

// ConsumerKind names the kind of the objects.
func (f *Info) ConsumerKind() Kind { return Of(f.GroupKind()) }

// PodTemplate returns the path to the pod template in most kinds of workload.
func PodTemplate() []string { return []string{"spec", "template"} }

// Typed are those of the kinds that every cluster has. They are never
// modified.
var Typed = map[Kind]*Info{
	KindDeployment:  {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Resource: "deployments", Template: PodTemplate()},
	KindStatefulSet: {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Resource: "statefulsets", Template: PodTemplate()},
	KindDaemonSet:   {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Resource: "daemonsets", Template: PodTemplate()},
	KindCronJob:     {GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("CronJob"), Resource: "cronjobs", Template: []string{"spec", "jobTemplate", "spec", "template"}},
	KindPod:         {GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: "pods"},
}

// Known are those of the kinds that are known from the start, but that a
// cluster may lack.
func Known() []*Info {
	return []*Info{
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
			Resource:         "rollouts", Template: PodTemplate(),
		},
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "apps.openshift.io", Version: "v1", Kind: "DeploymentConfig"},
			Resource:         "deploymentconfigs", Template: PodTemplate(),
		},
	}
}

// Optional are those of all workloads that a cluster may lack, the
// declared ones included.
func Optional(declared []WorkloadKind) []*Info {
	forms := Known()
	for _, kind := range declared {
		forms = append(forms, kind.Info())
	}
	return forms
}

// Names are what people may call the kind.
func (f *Info) Names() []string {
	var names []string
	for _, name := range []string{strings.ToLower(f.Kind), f.Resource} {
		names = append(names, name, name+"."+f.Group)
	}
	return names
}
