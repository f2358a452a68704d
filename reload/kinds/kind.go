package kinds

import (
	"cmp"
	"slices"
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
	// Template is the path to the pod template; nil if there is none, or if only
	// Annotations are known of it.
	Template []string
	// Annotations is the path to what the operator of the kind makes annotations of its
	// pods. Without it, the object itself is stamped.
	Annotations []string
	// RunsToCompletion is true if pods end by themselves. A stamp then starts no rollout:
	// later pods read it.
	RunsToCompletion bool
	// Deadline is true if the status reports an exceeded progress deadline.
	Deadline bool
	// OnDelete is true if the kind cannot be paused: its update strategy OnDelete keeps
	// pods instead.
	OnDelete bool
}

// RunsToCompletion reports whether the pods of a built-in kind end by themselves.
func (k Kind) RunsToCompletion() bool {
	info, typed := Typed[k]
	return k == KindJob || typed && info.RunsToCompletion
}

// ConsumerKind returns the Kind of the objects.
func (i *Info) ConsumerKind() Kind { return Of(i.GroupKind()) }

// PodTemplate returns the path to the pod template in most kinds of workload.
func PodTemplate() []string { return []string{"spec", "template"} }

// StampAt returns the path to the annotations that a restart sets; nil if it sets those of
// the object.
func (i *Info) StampAt() []string {
	if i.Template == nil {
		return i.Annotations
	}
	return slices.Concat(i.Template, []string{"metadata", "annotations"})
}

// Typed are the kinds that every cluster has. The map must not be modified.
var Typed = map[Kind]*Info{
	KindDeployment:  {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Resource: "deployments", Template: PodTemplate(), Deadline: true},
	KindStatefulSet: {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Resource: "statefulsets", Template: PodTemplate(), OnDelete: true},
	KindDaemonSet:   {GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Resource: "daemonsets", Template: PodTemplate(), OnDelete: true},
	KindCronJob: {
		GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("CronJob"), Resource: "cronjobs",
		Template: []string{"spec", "jobTemplate", "spec", "template"}, RunsToCompletion: true,
	},
	KindPod: {GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: "pods"},
}

// Known returns the built-in kinds that a cluster may not have.
func Known() []*Info {
	return []*Info{
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
			Resource:         "rollouts", Template: PodTemplate(), Deadline: true,
		},
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "apps.openshift.io", Version: "v1", Kind: "DeploymentConfig"},
			Resource:         "deploymentconfigs", Template: PodTemplate(), Deadline: true,
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

// Key identifies one consumer, which is reconciled by itself.
type Key struct {
	Kind            Kind
	Namespace, Name string
}

// String formats the key as Kind/namespace/name.
func (k Key) String() string { return string(k.Kind) + "/" + k.Namespace + "/" + k.Name }

// Compare orders keys by kind, namespace and name. It returns -1, 0 or 1.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}
