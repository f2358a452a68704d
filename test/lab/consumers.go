package lab

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

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

// notGoing is nil unless a namespace of that name is being deleted as far as admission knows,
// which hears a moment later that it is gone. One that is made before that gets no account.
func notGoing(ctx context.Context, client kubernetes.Interface, name string) error {
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
	_, err := client.CoreV1().ConfigMaps(name).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return ErrorIf(apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), "an earlier namespace %s is being deleted", name)
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

// StatefulSet returns a StatefulSet of pods like spec.
func StatefulSet(namespace, name string, replicas int32, spec corev1.PodSpec) *appsv1.StatefulSet {
	like := Deployment(namespace, name, replicas, spec)
	return &appsv1.StatefulSet{ObjectMeta: like.ObjectMeta, Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: like.Spec.Selector, Template: like.Spec.Template,
	}}
}

// DaemonSet returns a DaemonSet of pods like spec.
func DaemonSet(namespace, name string, spec corev1.PodSpec) *appsv1.DaemonSet {
	like := Deployment(namespace, name, 0, spec)
	return &appsv1.DaemonSet{ObjectMeta: like.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: like.Spec.Selector, Template: like.Spec.Template}}
}

// CronJob returns a CronJob of pods like spec, whose time never comes.
func CronJob(namespace, name string, spec corev1.PodSpec) *batchv1.CronJob {
	like := Deployment(namespace, name, 0, spec)
	like.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.CronJob{ObjectMeta: like.ObjectMeta, Spec: batchv1.CronJobSpec{
		Schedule: "0 0 30 2 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: like.Spec.Template}},
	}}
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
	return bind(ctx, client, user, "", "ClusterRole", role, user)
}

// BindIn gives user the Role of namespace, by a binding of both names.
func BindIn(ctx context.Context, client kubernetes.Interface, namespace, role, user string) error {
	return bind(ctx, client, user+"-"+role, namespace, "Role", role, user)
}

// BindClusterRoleIn gives user the ClusterRole in namespace alone, by a binding of the user's name.
func BindClusterRoleIn(ctx context.Context, client kubernetes.Interface, namespace, role, user string) error {
	return bind(ctx, client, user, namespace, "ClusterRole", role, user)
}

func bind(ctx context.Context, client kubernetes.Interface, name, namespace, kind, role, user string) (err error) {
	meta := metav1.ObjectMeta{Name: name}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	to := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	if namespace == "" {
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: to}, metav1.CreateOptions{})
	} else {
		_, err = client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: to}, metav1.CreateOptions{})
	}
	if err == nil {
		err = Granted(ctx, client, namespace, ref, user)
	}
	if err != nil {
		return fmt.Errorf("bind %s %s to %s: %w", kind, role, user, err)
	}
	return nil
}

// Granted waits until the API server lets user do the first thing that the role grants: its
// authorizer hears of a binding a moment later.
func Granted(ctx context.Context, client kubernetes.Interface, namespace string, ref rbacv1.RoleRef, user string) error {
	var rules []rbacv1.PolicyRule
	if ref.Kind == "Role" {
		role, err := client.RbacV1().Roles(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		rules = role.Rules
	} else {
		role, err := client.RbacV1().ClusterRoles().Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		rules = role.Rules
	}
	first := slices.IndexFunc(rules, func(rule rbacv1.PolicyRule) bool { return len(rule.Resources) > 0 })
	if first < 0 {
		return nil
	}
	rule := rules[first]
	asked := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0]}
	asked.Resource, asked.Subresource, _ = strings.Cut(rule.Resources[0], "/")
	if len(rule.ResourceNames) > 0 {
		asked.Name = rule.ResourceNames[0]
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &asked}}
	return Eventually(ctx, func(ctx context.Context) error {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return errors.Join(err, ErrorIf(err == nil && !answer.Status.Allowed, "%+v is not allowed yet", asked))
	})
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
