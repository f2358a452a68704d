package node

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// tasks is where containerd keeps what runs, a folder for each container by its
// id. It is the same in 1.6, 1.7 and 2.
const tasks = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"

// Container is a running container, seen from outside with the eyes of its first
// process.
type Container struct {
	// ID is containerd's. A restarted container has another one.
	ID  string
	dir string // its process in the node's /proc
}

// Container finds the container of that name, as the API server tells it. A pod
// that was just bound has none yet.
func (n *Node) Container(pod *corev1.Pod, name string) (*Container, error) {
	for _, status := range pod.Status.ContainerStatuses {
		id, found := strings.CutPrefix(status.ContainerID, "containerd://")
		if status.Name != name || !found || status.State.Running == nil {
			continue
		}
		content, err := os.ReadFile(filepath.Join(n.root(), tasks, id, "init.pid"))
		if err != nil {
			return nil, fmt.Errorf("container %s of %s/%s: %w", name, pod.Namespace, pod.Name, err)
		}
		pid, err := strconv.Atoi(string(content))
		if err != nil {
			return nil, fmt.Errorf("container %s of %s/%s: %w", name, pod.Namespace, pod.Name, err)
		}
		return &Container{ID: id, dir: filepath.Join(n.root(), "proc", strconv.Itoa(pid))}, nil
	}
	return nil, fmt.Errorf("container %s of %s/%s does not run", name, pod.Namespace, pod.Name)
}

// root is the node's file system: that of its first process.
func (n *Node) root() string {
	return filepath.Join("/proc", strconv.Itoa(n.process.PID()), "root")
}

// File is what a process of the container would read from path now. On the way
// there is no symbolic link that begins with a slash.
func (c *Container) File(path string) (string, error) {
	content, err := os.ReadFile(filepath.Join(c.dir, "root", path))
	return string(content), err
}

// Env is the value that the container's first process was started with.
func (c *Container) Env(name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(c.dir, "environ"))
	if err != nil {
		return "", err
	}
	for pair := range strings.SplitSeq(string(content), "\x00") {
		if value, found := strings.CutPrefix(pair, name+"="); found {
			return value, nil
		}
	}
	return "", errors.New("it was started without " + name)
}
