package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Apply creates or overwrites every object of a YAML file, as kubectl apply
// --server-side would.
func Apply(ctx context.Context, config *rest.Config, file string) error {
	return apply(ctx, config, file, metav1.ApplyOptions{})
}

// Accepted is Apply without an effect: it fails where the API server refuses an
// object. Their namespace must be there.
func Accepted(ctx context.Context, config *rest.Config, file string) error {
	return apply(ctx, config, file, metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}})
}

func apply(ctx context.Context, config *rest.Config, file string, options metav1.ApplyOptions) error {
	options.FieldManager, options.Force = "harness", true
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(typed.Discovery())
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("apply %s: %w", file, err)
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("apply %s: %w", file, err)
		}
		_, err = client.Resource(mapping.Resource).Namespace(object.GetNamespace()).
			Apply(ctx, object.GetName(), &object, options)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", kind.Kind, object.GetName(), err)
		}
	}
}

// EnsureNamespace creates a namespace unless it exists.
func EnsureNamespace(ctx context.Context, client kubernetes.Interface, name string, labels map[string]string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace: %w", err)
	}
	return nil
}

// Secret returns an Opaque Secret.
func Secret(namespace, name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
}

// ByEnv consumes one key of a Secret as an environment variable.
func ByEnv(secret, key string) corev1.PodSpec {
	spec := podSpec()
	spec.Containers[0].Env = []corev1.EnvVar{{Name: "VALUE", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key},
	}}}
	return spec
}

// ByEnvFrom consumes all keys of a Secret as environment variables.
func ByEnvFrom(secret string) corev1.PodSpec {
	spec := podSpec()
	spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{
		SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}},
	}}
	return spec
}

// ByVolume mounts a Secret.
func ByVolume(secret string) corev1.PodSpec {
	spec := podSpec()
	spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret},
	}}}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
	return spec
}

// ByNothing consumes no Secret.
func ByNothing() corev1.PodSpec { return podSpec() }

// Image is what containers are made from. Only a real node needs it: test/node
// makes one of that name, of busybox.
const Image = "headwater.test/busybox:1"

// podSpec is a pod that any node will do for.
func podSpec() corev1.PodSpec {
	no := false
	var grace int64
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "app", Image: Image, ImagePullPolicy: corev1.PullNever}},
		HostNetwork:                   true,
		AutomountServiceAccountToken:  &no,
		TerminationGracePeriodSeconds: &grace,
		Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}
}

// Deployment returns a Deployment of pods like spec.
func Deployment(namespace, name string, replicas int32, spec corev1.PodSpec) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// CreateNode makes a node that the scheduler uses although no kubelet runs on
// it.
func CreateNode(ctx context.Context, client kubernetes.Interface, name string) error {
	node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	quantities := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("1000")}
	node.Status.Capacity, node.Status.Allocatable = quantities, quantities
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Played",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	node.ResourceVersion = "" // the control plane may have tainted it meanwhile
	if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("make node ready: %w", err)
	}
	return nil
}

// SetRunning plays the kubelet of a pod that is bound to a node.
func SetRunning(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	return setStatus(ctx, client, pod, corev1.ConditionTrue, nil)
}

// SetCrashing plays the kubelet of a pod whose container ends whenever it is
// started.
func SetCrashing(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	return setStatus(ctx, client, pod, corev1.ConditionFalse, []corev1.ContainerStatus{{
		Name: "app", RestartCount: 2,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: crashLoop}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Now()}},
	}})
}

const crashLoop = "CrashLoopBackOff"

// InCrashLoop reports whether a kubelet says that the container crashes again and
// again.
func InCrashLoop(container corev1.ContainerStatus) bool {
	return container.State.Waiting != nil && container.State.Waiting.Reason == crashLoop
}

func setStatus(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, isReady corev1.ConditionStatus, containers []corev1.ContainerStatus) error {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = containers
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: isReady, LastTransitionTime: metav1.Now()}
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == ready.Type })
	pod.Status.Conditions = append(pod.Status.Conditions, ready)
	if _, err := client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("set the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// Grant lets user do anything to Secrets, and nothing else, by a ClusterRole
// of that name.
func Grant(ctx context.Context, client kubernetes.Interface, role, user string) error {
	_, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create ClusterRole: %w", err)
	}
	return Bind(ctx, client, role, user)
}

// Bind gives user the ClusterRole, by a binding of the user's name.
func Bind(ctx context.Context, client kubernetes.Interface, role, user string) error {
	_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create ClusterRoleBinding: %w", err)
	}
	return nil
}

// BindIn gives user the Role of namespace, by a binding of the user's name.
func BindIn(ctx context.Context, client kubernetes.Interface, namespace, role, user string) error {
	_, err := client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create RoleBinding: %w", err)
	}
	return nil
}

// Gone is nil when err, the outcome of a deletion, says that the object is
// gone already.
func Gone(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return errors.New("still there")
	default:
		return err
	}
}

// IgnoreGone makes nothing of the deletion, or the edit, of what is not there.
func IgnoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// byHeadwater is how the API server says which webhook or policy refused.
var byHeadwater = regexp.MustCompile(`webhook "[a-z0-9.-]+\.protect\.headwater\.dev"|ValidatingAdmissionPolicy 'headwater-[a-z]+'`)

// Refused is nil when err, the outcome of a request, is a refusal by Headwater. A
// request that was allowed is an error of the API, too: nobody is to take it for
// one that was not answered.
func Refused(err error) error {
	switch {
	case err == nil:
		return apierrors.NewBadRequest("it was allowed")
	case !apierrors.IsForbidden(err) || !byHeadwater.MatchString(err.Error()):
		return fmt.Errorf("not refused by Headwater: %w", err)
	default:
		return nil
	}
}
