//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/cluster/internal/flock"
)

const (
	upTimeout      = 10 * time.Minute
	downTimeout    = 20 * time.Second
	requestTimeout = 5 * time.Second
	pollInterval   = 100 * time.Millisecond
)

var errNotRunning = errors.New("no cluster is running: start one with up")

func (l *local) up(ctx context.Context) error {
	if _, err := cluster.Build(ctx, os.Stderr); err != nil {
		return err
	}
	lock, err := l.lockCommands(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	_, running, err := l.running()
	if err != nil {
		return err
	}
	var server *exec.Cmd
	if !running {
		if server, err = l.spawn(); err != nil {
			return err
		}
	}
	if err := l.awaitReady(ctx, server); err != nil {
		return err
	}
	return l.status(ctx)
}

func (l *local) lockCommands(ctx context.Context) (*flock.Lock, error) {
	return flock.Acquire(ctx, l.commandLock(), func() {
		_, _ = fmt.Fprintln(os.Stderr, "waiting for another up or down …")
	})
}

// spawn runs serve in a session of its own, which the end of this shell does not touch.
func (l *local) spawn() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	log, err := os.Create(l.logFile())
	if err != nil {
		return nil, fmt.Errorf("make the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	if err := os.RemoveAll(l.kubeconfig()); err != nil {
		return nil, fmt.Errorf("remove the last cluster's kubeconfig: %w", err)
	}
	server := exec.Command(self, "-in", l.folder, serveCommand)
	server.Dir = l.root
	server.Stdout, server.Stderr = log, log
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("start the cluster's process: %w", err)
	}
	return server, nil
}

// awaitReady ends the server that we started, if any, when it does not get ready.
func (l *local) awaitReady(ctx context.Context, server *exec.Cmd) error {
	ctx, cancel := context.WithTimeoutCause(ctx, upTimeout, fmt.Errorf("the cluster was not ready in %s", upTimeout))
	defer cancel()
	var exited chan struct{}
	if server != nil {
		exited = make(chan struct{})
		go func() {
			_ = server.Wait()
			close(exited)
		}()
	}
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-exited:
			return false, errors.New(l.serverLog())
		default:
			_, err := l.version(ctx)
			return err == nil, nil
		}
	})
	if err != nil && ctx.Err() != nil {
		if server != nil {
			_ = server.Process.Signal(syscall.SIGTERM)
			<-exited
		}
		return fmt.Errorf("%w; its log is %s", context.Cause(ctx), l.logFile())
	}
	return err
}

func (l *local) serverLog() string {
	content, err := os.ReadFile(l.logFile())
	if err != nil {
		return "the cluster's process ended, and its log cannot be read: " + err.Error()
	}
	return strings.TrimPrefix(strings.TrimSpace(string(content)), "cluster: ")
}

func (l *local) down(ctx context.Context) error {
	lock, err := l.lockCommands(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	pid, running, err := l.running()
	if err != nil {
		return err
	}
	if !running {
		fmt.Println("no cluster is running")
		return l.clean()
	}
	if err := l.end(ctx, pid); err != nil {
		return err
	}
	fmt.Println("the cluster was stopped, and its data removed")
	return l.clean()
}

// end gets hold of the process first and then makes sure that it is still ours,
// so that no other that got its number since is ever meant.
func (l *local) end(ctx context.Context, pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("find process %d, which holds the cluster: %w", pid, err)
	}
	if now, running, err := l.running(); err != nil || !running || now != pid {
		return err
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Kill} {
		if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("end process %d, which holds the cluster: %w", pid, err)
		}
		err = wait.PollUntilContextTimeout(ctx, pollInterval, downTimeout, true, l.ended)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("process %d, which holds the cluster, does not end: %w", pid, err)
}

func (l *local) ended(context.Context) (bool, error) {
	held, err := flock.Held(l.pidFile())
	return !held, err
}

func (l *local) status(ctx context.Context) error {
	pid, running, err := l.running()
	if err != nil {
		return err
	}
	if !running {
		return errNotRunning
	}
	version, err := l.version(ctx)
	if err != nil {
		return fmt.Errorf("process %d holds a cluster that does not answer: %w; its logs are in %s", pid, err, l.runDir())
	}
	config, err := l.config()
	if err != nil {
		return err
	}
	fmt.Printf("Kubernetes %s runs at %s (process %d, logs in %s)\n\n  export KUBECONFIG=%s\n  kubectl get ns\n",
		version, config.Host, pid, l.runDir(), l.kubeconfig())
	return nil
}

// version is known once the cluster is ready.
func (l *local) version(ctx context.Context) (string, error) {
	config, err := l.config()
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("make a client: %w", err)
	}
	if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return "", fmt.Errorf("ask the API server: %w", err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("ask the API server: %w", err)
	}
	return version.GitVersion, nil
}

func (l *local) config() (*rest.Config, error) {
	if _, err := os.Stat(l.kubeconfig()); errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("it is not ready yet")
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.Timeout = requestTimeout
	return config, nil
}
