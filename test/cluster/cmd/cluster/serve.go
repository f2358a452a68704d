//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/cluster/internal/flock"
)

const (
	serveCommand = "serve"
	lockTimeout  = 5 * time.Second
)

// serve holds the cluster until it is asked to end. The components are its
// children, and end with it. It is what up leaves running.
func (l *local) serve(ctx context.Context) error {
	lock, err := l.lockPID(ctx)
	if err != nil {
		return err
	}
	return errors.Join(l.hold(ctx), lock.Release())
}

func (l *local) lockPID(ctx context.Context) (*flock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	lock, err := flock.Acquire(ctx, l.pidFile(), func() {})
	if err != nil {
		return nil, fmt.Errorf("a cluster runs already: %w", err)
	}
	return lock, lock.Write(strconv.Itoa(os.Getpid()))
}

func (l *local) hold(ctx context.Context) error {
	if err := l.clean(); err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Dir: l.runDir()})
	if err != nil {
		return err
	}
	if err := l.publish(c); err != nil {
		return errors.Join(err, c.Stop())
	}
	select {
	case <-ctx.Done():
	case <-c.Done():
	}
	return errors.Join(os.Remove(l.kubeconfig()), c.Stop())
}

// clean removes what a cluster before left behind.
func (l *local) clean() error {
	for _, path := range []string{l.kubeconfig(), l.runDir()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove what the last cluster left: %w", err)
		}
	}
	return nil
}

// publish tells up that the cluster is ready: the kubeconfig appears, and is whole.
func (l *local) publish(c *cluster.Cluster) error {
	content, err := os.ReadFile(c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("publish the kubeconfig: %w", err)
	}
	fresh := l.kubeconfig() + ".new"
	if err := os.WriteFile(fresh, content, 0o600); err != nil {
		return fmt.Errorf("publish the kubeconfig: %w", err)
	}
	if err := os.Rename(fresh, l.kubeconfig()); err != nil {
		return fmt.Errorf("publish the kubeconfig: %w", err)
	}
	return nil
}

// running gives the pid of the process that serves; nobody else can hold the lock.
func (l *local) running() (pid int, running bool, err error) {
	held, err := flock.Held(l.pidFile())
	if err != nil || !held {
		return 0, false, err
	}
	content, err := os.ReadFile(l.pidFile())
	if err != nil {
		return 0, false, fmt.Errorf("read which process holds the cluster: %w", err)
	}
	pid, err = strconv.Atoi(string(content))
	if err != nil || pid <= 0 {
		return 0, false, fmt.Errorf("%s does not name a process: try again in a moment", l.pidFile())
	}
	return pid, true, nil
}
