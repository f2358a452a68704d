package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// controlGroups are those of all containers that run. Killed containers leave
// them behind, empty. In version 1 of control groups each controller has its
// own folder of them.
func (n *Node) controlGroups() []string {
	entries, err := os.ReadDir(filepath.Join(n.root(), tasks))
	if err != nil {
		return nil // containerd has not begun to run any
	}
	var groups []string
	for _, entry := range entries {
		for _, pattern := range []string{"/sys/fs/cgroup/k8s.io/", "/sys/fs/cgroup/*/k8s.io/"} {
			found, _ := filepath.Glob(pattern + entry.Name())
			groups = append(groups, found...)
		}
	}
	return groups
}

func removeControlGroups(groups []string) error {
	var errs []error
	for _, group := range groups {
		if err := os.Remove(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove a control group that the node leaves: %w", err))
		}
		_ = os.Remove(filepath.Dir(group)) // which fails while it holds others
	}
	return errors.Join(errs...)
}
