package rollouts

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/process"
)

//go:embed stages.yaml
var stages []byte

// room is the label that says what a node has room for.
const room = "room"

// startKwok builds kwok where need be, and runs it against c. It plays every
// node there is.
func startKwok(ctx context.Context, c *cluster.Cluster) (*process.Process, error) {
	bin, err := cluster.Build(ctx, os.Stderr, cluster.Kwok)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(c.Dir(), "kwok-stages.yaml")
	if err := os.WriteFile(file, stages, 0o600); err != nil {
		return nil, fmt.Errorf("write kwok's stages: %w", err)
	}
	return process.Start(process.Spec{
		Name: cluster.Kwok, Binary: filepath.Join(bin, cluster.Kwok), Dir: c.Dir(), LogFile: filepath.Join(c.Dir(), "kwok.log"),
		Args: []string{"--kubeconfig=" + c.Kubeconfig(), "--config=" + file, "--manage-all-nodes"},
		// It looks for a configuration of its own there.
		Env: []string{"HOME=" + c.Dir()},
	})
}

// createNode makes a node for so many pods, and waits until kwok has it ready.
func createNode(ctx context.Context, client kubernetes.Interface, kwok *process.Process, name string, labels map[string]string, pods int64) error {
	nodes := client.CoreV1().Nodes()
	quantities := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI),
	}
	// The status of a node that is created stays.
	_, err := nodes.Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status:     corev1.NodeStatus{Capacity: quantities, Allocatable: quantities},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	return lab.Eventually(ctx, func(ctx context.Context) error {
		if err := kwok.Failure(); err != nil {
			return lab.Permanent(err)
		}
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(node.Status.Allocatable) == 0 {
			return lab.Permanent(fmt.Errorf("node %s has lost its room", name))
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("the node is not ready")
	})
}
