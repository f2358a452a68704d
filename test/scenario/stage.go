package scenario

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

// setUp makes everything but Headwater's own work.
func (s *Story) setUp(ctx context.Context) error {
	version, err := s.admin.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	s.tell.Say("Kubernetes %s: etcd, API server, controller manager and scheduler, as processes of this machine", version.GitVersion)
	return s.play(ctx,
		step{what: "namespaces platform, team-a, team-b; Secret platform/blogsecret", do: s.createSource},
		step{what: "jane may edit Secrets in platform; olga holds cluster-admin through a ClusterRoleBinding", do: s.createPeople},
		step{what: "in team-a: Deployments that read it by env, by envFrom, as a volume, not at all; a bare Pod that mounts it", do: s.createConsumers},
		step{what: "Headwater's namespace, service account and permissions (deploy/rbac.yaml), and the kind RuleStatus (deploy/crd.yaml)", do: func(ctx context.Context) error {
			kind := filepath.Join(filepath.Dir(s.options.RBAC), "crd.yaml")
			return errors.Join(lab.Install(ctx, s.options.Cluster.Config(), s.options.RBAC), lab.Apply(ctx, s.options.Cluster.Config(), kind))
		}})
}

func (s *Story) createSource(ctx context.Context) error {
	for _, name := range []string{platform, teamA, teamB} {
		if err := lab.EnsureNamespace(ctx, s.admin, name, nil); err != nil {
			return err
		}
	}
	secret := lab.Secret(platform, sourceName, map[string]string{"username": "blog", "password": "first"})
	if _, err := s.admin.CoreV1().Secrets(platform).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the source: %w", err)
	}
	return nil
}

func (s *Story) createPeople(ctx context.Context) error {
	return errors.Join(lab.BindClusterRoleIn(ctx, s.admin, platform, "admin", editor), lab.Bind(ctx, s.admin, "cluster-admin", operator))
}

// createConsumers makes the workloads. Where there is no kubelet, a node is made
// for the scheduler, and the scenario says for the kubelet that pods run. A real
// one runs them once their Secret is there.
func (s *Story) createConsumers(ctx context.Context) error {
	if s.options.Node == nil {
		if err := lab.CreateNode(ctx, s.admin, played); err != nil {
			return err
		}
	}
	for name, spec := range map[string]corev1.PodSpec{
		envWorkload:     lab.ByEnv(sourceName, "password"),
		envFromWorkload: lab.ByEnvFrom(sourceName),
		volumeWorkload:  lab.ByVolume(sourceName),
		idleWorkload:    lab.ByNothing(),
	} {
		deployment := lab.Deployment(teamA, name, 1, spec)
		if _, err := s.admin.AppsV1().Deployments(teamA).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create deployment: %w", err)
		}
	}
	err := lab.Eventually(ctx, func(ctx context.Context) error {
		_, err := s.admin.CoreV1().ServiceAccounts(teamA).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the service account of pods: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: barePod}, Spec: lab.ByVolume(sourceName)}
	if _, err := s.admin.CoreV1().Pods(teamA).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	if s.options.Node != nil {
		return nil
	}
	return lab.Eventually(ctx, s.allRunning)
}

// allRunning plays the kubelet until one pod of each workload runs.
func (s *Story) allRunning(ctx context.Context) error {
	running := 0
	err := lab.PlayPods(ctx, s.admin, "", func(_ context.Context, pod *corev1.Pod) (lab.Health, error) {
		if pod.Namespace == teamA && pod.Status.Phase == corev1.PodRunning {
			running++
		}
		if pod.Namespace != teamA || pod.Status.Phase == corev1.PodRunning {
			return lab.Waits, nil
		}
		return lab.Runs, nil
	})
	if err == nil && running < 5 {
		err = errors.New("not all pods run yet")
	}
	return err
}
