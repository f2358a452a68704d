package scenario

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/harness"
)

// setUp makes everything but Headwater's own work.
func (s *Story) setUp(ctx context.Context) error {
	version, err := s.admin.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	s.tell.Say("Kubernetes %s: etcd, API server, controller manager and scheduler, as processes of this machine", version.GitVersion)
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"namespaces platform, team-a, team-b; Secret platform/blogsecret", s.createSource},
		{"jane may edit Secrets in platform; olga holds cluster-admin through a ClusterRoleBinding", s.createPeople},
		{"in team-a: Deployments that read it by env, by envFrom, as a volume, not at all; a bare Pod that mounts it", s.createConsumers},
		{"Headwater's namespace, service account and permissions (deploy/rbac.yaml)", func(ctx context.Context) error {
			return harness.Apply(ctx, s.options.Cluster.Config(), s.options.RBAC)
		}},
	}
	for _, step := range steps {
		if err := s.tell.Step(ctx, step.what, step.do); err != nil {
			return err
		}
	}
	return nil
}

func (s *Story) createSource(ctx context.Context) error {
	for _, name := range []string{platform, teamA, teamB} {
		if err := harness.EnsureNamespace(ctx, s.admin, name, nil); err != nil {
			return err
		}
	}
	secret := harness.Secret(platform, sourceName, map[string]string{"username": "blog", "password": "first"})
	if _, err := s.admin.CoreV1().Secrets(platform).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the source: %w", err)
	}
	return nil
}

func (s *Story) createPeople(ctx context.Context) error {
	_, err := s.admin.RbacV1().RoleBindings(platform).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: editor},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: editor}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind the editor: %w", err)
	}
	_, err = s.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: operator},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operator}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind the operator: %w", err)
	}
	return nil
}

// createConsumers makes the workloads. Where there is no kubelet, a node is made
// for the scheduler, and the scenario says for the kubelet that pods run. A real
// one runs them once their Secret is there.
func (s *Story) createConsumers(ctx context.Context) error {
	if s.options.Node == nil {
		if err := harness.CreateNode(ctx, s.admin, played); err != nil {
			return err
		}
	}
	for name, spec := range map[string]corev1.PodSpec{
		envWorkload:     harness.ByEnv(sourceName, "password"),
		envFromWorkload: harness.ByEnvFrom(sourceName),
		volumeWorkload:  harness.ByVolume(sourceName),
		idleWorkload:    harness.ByNothing(),
	} {
		deployment := harness.Deployment(teamA, name, 1, spec)
		if _, err := s.admin.AppsV1().Deployments(teamA).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create deployment: %w", err)
		}
	}
	err := harness.Eventually(ctx, func(ctx context.Context) error {
		_, err := s.admin.CoreV1().ServiceAccounts(teamA).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the service account of pods: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: barePod}, Spec: harness.ByVolume(sourceName)}
	if _, err := s.admin.CoreV1().Pods(teamA).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	if s.options.Node != nil {
		return nil
	}
	return harness.Eventually(ctx, s.allRunning)
}

// allRunning plays the kubelet until one pod of each workload runs.
func (s *Story) allRunning(ctx context.Context) error {
	pods, err := s.admin.CoreV1().Pods(teamA).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	running := 0
	for _, pod := range pods.Items {
		switch {
		case pod.Status.Phase == corev1.PodRunning:
			running++
		case pod.Spec.NodeName != "":
			if err := harness.SetRunning(ctx, s.admin, &pod); err != nil {
				return err
			}
		}
	}
	if running < 5 {
		return errors.New("not all pods run yet")
	}
	return nil
}
