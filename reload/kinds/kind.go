package kinds

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WorkloadKinds returns the workload kinds of every cluster, in the order in which they
// are listed.
func WorkloadKinds() []Kind {
	return []Kind{KindDeployment, KindStatefulSet, KindDaemonSet, KindCronJob}
}

// KindJob is not a kind of consumer: the pods of Jobs are. A Job is read only to report
// that Reloader would recreate it.
const KindJob Kind = "Job.batch"

// Kind is a kind of consumer: the plain name for kinds of every cluster, and otherwise
// the name, a dot and the API group.
type Kind string

// The built-in kinds of consumers. All but KindPod are workloads: they have a pod
// template, and are restarted by a stamp on it. The stamp on a CronJob starts nothing;
// it records what later Jobs read.
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

// Of returns the Kind of a group and kind.
func Of(kind schema.GroupKind) Kind {
	for _, info := range Typed {
		if info.GroupKind() == kind {
			return Kind(kind.Kind)
		}
	}
	return Kind(kind.String())
}

// GroupKind is the inverse of Of.
func (k Kind) GroupKind() schema.GroupKind {
	if info, typed := Typed[k]; typed {
		return info.GroupKind()
	}
	return schema.ParseGroupKind(string(k))
}

// Info describes the objects of one kind.
type Info struct {
	// GroupVersionKind is the version by which they are read and written.
	schema.GroupVersionKind
	// Resource is the plural name. For declared kinds it is a guess until the API
	// server serves the kind.
	Resource string
	// Template is the path to the pod template. Without one, the object itself is
	// stamped.
	Template []string
}

// ConsumerKind returns the Kind of the objects.
func (i *Info) ConsumerKind() Kind { return Of(i.GroupKind()) }

// PodTemplate returns the path to the pod template in most kinds of workload.
func PodTemplate() []string { return []string{"spec", "template"} }

// Typed are the kinds that every cluster has. The map must not be modified.
var Typed = map[Kind]*Info{
	KindDeployment:  {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Resource: "deployments", Template: PodTemplate()},
	KindStatefulSet: {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Resource: "statefulsets", Template: PodTemplate()},
	KindDaemonSet:   {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Resource: "daemonsets", Template: PodTemplate()},
	KindCronJob:     {GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("CronJob"), Resource: "cronjobs", Template: []string{"spec", "jobTemplate", "spec", "template"}},
	KindPod:         {GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: "pods"},
}

// Known returns the built-in kinds that a cluster may not have.
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

// Optional returns all workload kinds that a cluster may not have, including declared
// ones.
func Optional(declared []WorkloadKind) []*Info {
	forms := Known()
	for _, kind := range declared {
		forms = append(forms, kind.Info())
	}
	return forms
}

// Names returns the names that users may give for the kind.
func (i *Info) Names() []string {
	var names []string
	for _, name := range []string{strings.ToLower(i.Kind), i.Resource} {
		names = append(names, name, name+"."+i.Group)
	}
	return names
}
