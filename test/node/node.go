// Package node joins a real node to a test control plane: containerd, runc and a
// kubelet, and an image of busybox made on the spot. Only root can, on a Linux
// with what Missing asks for. Nothing of it outlives the process that started it.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/process"
)

// Options may be left empty.
type Options struct {
	// Name is the node's, by default node-1.
	Name string
	// By is its way to the API server, by default the straight one.
	By interface {
		KubeconfigFor(path, user string, groups ...string) error
	}
}

// Node is a running node.
type Node struct {
	name, address, dir string
	process            *process.Process

	stopOnce sync.Once
	stopErr  error
}

// Start builds the kubelet where need be, and returns once the node is ready for
// pods. The context bounds the start alone: the node runs until Stop, which comes
// before that of the cluster.
func Start(ctx context.Context, c *cluster.Cluster, options Options) (*Node, error) {
	if err := Missing(); err != nil {
		return nil, err
	}
	if options.Name == "" {
		options.Name = "node-1"
	}
	bin, err := cluster.Build(ctx, os.Stderr, cluster.Kubelet)
	if err != nil {
		return nil, err
	}
	if options.By == nil {
		options.By = c
	}
	n := &Node{name: options.Name, dir: filepath.Join(c.Dir(), options.Name)}
	// The API server lets it do what it lets any node do, and no more.
	if err := options.By.KubeconfigFor(n.path("kubeconfig"), "system:node:"+n.name, "system:nodes"); err != nil {
		return nil, err
	}
	if err := n.start(ctx, c, filepath.Join(bin, cluster.Kubelet)); err != nil {
		return nil, fmt.Errorf("start %s: %w", n.name, errors.Join(err, n.Stop()))
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, c *cluster.Cluster, kubelet string) (err error) {
	if n.address, err = ownAddress(); err != nil {
		return err
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	if err := n.writeFiles(busybox); err != nil {
		return err
	}
	n.process, err = process.Start(process.Spec{
		Name: n.name, Binary: busybox, Dir: n.dir, LogFile: n.path("node.log"), Alone: true,
		Env: []string{"PATH=" + os.Getenv("PATH")},
		Args: []string{
			"sh", "-c", script, "node.sh", n.dir, kubelet, "--kubeconfig=" + n.path("kubeconfig"), "--config=" + n.path("kubelet.yaml"),
			"--hostname-override=" + n.name, "--node-ip=" + n.address, "--cert-dir=/var/lib/kubelet/pki",
		},
	})
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	return lab.Eventually(ctx, func(ctx context.Context) error { return n.ready(ctx, client) })
}

func (n *Node) ready(ctx context.Context, client kubernetes.Interface) error {
	if err := n.process.Failure(); err != nil {
		return lab.Permanent(err)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("%w; its logs are in %s", err, n.dir)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("it is not ready; its logs are in %s", n.dir)
}

// Done is closed when the node has ended, of which Stop tells the reason.
func (n *Node) Done() <-chan struct{} { return n.process.Done() }

// PID is the process that all others of the node descend from.
func (n *Node) PID() int { return n.process.PID() }

// Name is what pods are bound to.
func (n *Node) Name() string { return n.name }

// Stop ends the node with all that runs on it, and waits for that. The API server
// is not told. It fails if the node had ended before on its own account.
func (n *Node) Stop() error {
	n.stopOnce.Do(func() {
		if n.process == nil {
			return
		}
		n.stopErr = n.process.Failure()
		groups := n.controlGroups()
		n.process.Kill()
		n.stopErr = errors.Join(n.stopErr, removeControlGroups(groups))
	})
	return n.stopErr
}

func (n *Node) path(name string) string { return filepath.Join(n.dir, name) }

// ownAddress is an address of this machine that a kubelet takes: not loopback.
func ownAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("find an address of this machine: %w", err)
	}
	var seen []string
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String(), nil
		}
		seen = append(seen, address.String())
	}
	return "", fmt.Errorf("a kubelet needs an IPv4 address other than loopback, and this machine has only %s", strings.Join(seen, ", "))
}
