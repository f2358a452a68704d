// Package cluster builds and runs a real Kubernetes control plane: etcd, the API
// server, the controller manager and the scheduler, on free ports of the local
// machine and in one folder. There are no nodes. Several run side by side, and on
// Linux none outlives the process that started it.
package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/test/process"
)

const (
	startAttempts = 5
	stopGrace     = 5 * time.Second
)

// Options may be left empty.
type Options struct {
	// Dir is an absent or empty folder for data and logs, by default a new
	// temporary one. It stays when the cluster stops.
	Dir string
	// Log is told what takes time. By default it is the standard error.
	Log io.Writer
	// Args are more flags by component, such as {APIServer: {"--v=4"}}.
	Args map[string][]string

	findPorts func() (ports, error)
}

// Cluster is a running control plane. Its methods may be called concurrently.
type Cluster struct {
	options Options
	bin     string
	dir     string
	name    string
	ports   ports
	creds   *credentials

	mu        sync.Mutex
	processes map[string]*process.Process
	stopped   bool

	done     chan struct{}
	doneOnce sync.Once
	stopOnce sync.Once
	stopErr  error
}

// Start builds the control plane where need be, and returns once it is ready for
// pods. The context bounds the start alone: the cluster runs until Stop.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Log == nil {
		options.Log = os.Stderr
	}
	if options.findPorts == nil {
		options.findPorts = freePorts
	}
	bin, err := Build(ctx, options.Log)
	if err != nil {
		return nil, err
	}
	dir, err := prepareDir(options.Dir)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c := newCluster(options, bin, dir)
		err := c.start(ctx)
		if err == nil {
			return c, nil
		}
		_ = c.Stop()
		var taken *process.PortTakenError
		if attempt == startAttempts || !errors.As(err, &taken) {
			return nil, fmt.Errorf("start the control plane: %w", err)
		}
		_, _ = fmt.Fprintln(options.Log, "another process took a port of the control plane, starting over with other ports …")
	}
}

func newCluster(options Options, bin, dir string) *Cluster {
	return &Cluster{
		options:   options,
		bin:       bin,
		dir:       dir,
		name:      "headwater-" + strings.ToLower(rand.Text()),
		processes: map[string]*process.Process{},
		done:      make(chan struct{}),
	}
}

func prepareDir(dir string) (string, error) {
	if dir == "" {
		temp, err := os.MkdirTemp("", "headwater-cluster-")
		if err != nil {
			return "", fmt.Errorf("make a folder for the cluster: %w", err)
		}
		return temp, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the cluster's folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cluster's folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("read the cluster's folder: %w", err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("the cluster's folder %s is not empty: remove it, or choose another", dir)
	}
	return dir, nil
}

// Dir holds the data, the credentials and, as COMPONENT.log, the logs.
func (c *Cluster) Dir() string {
	return c.dir
}

func (c *Cluster) path(name string) string {
	return filepath.Join(c.dir, name)
}

// PIDs are the process ids of the components that were started, by component.
func (c *Cluster) PIDs() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids := map[string]int{}
	for name, component := range c.processes {
		pids[name] = component.PID()
	}
	return pids
}

// Done is closed when a component ends that nobody stopped, and by Stop, which
// tells the reason.
func (c *Cluster) Done() <-chan struct{} {
	return c.done
}

func (c *Cluster) close() {
	c.doneOnce.Do(func() { close(c.done) })
}

// Stop ends all components and waits for them. It fails if one of them had ended
// before on its own account; nothing is left running in any case.
func (c *Cluster) Stop() error {
	c.stopOnce.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stopErr = c.failureLocked()
		c.stopped = true
		c.close()
		// A server stops after its clients, so that it need not wait for them.
		for _, names := range [][]string{{ControllerManager, Scheduler}, {APIServer}, {Etcd}} {
			var running sync.WaitGroup
			for _, name := range names {
				if component := c.processes[name]; component != nil {
					running.Go(func() { component.Stop(stopGrace) })
				}
			}
			running.Wait()
		}
	})
	return c.stopErr
}

// Discard stops the cluster and removes its folder, or keeps it when err, the
// outcome of what was done with the cluster, says that there is something to
// look into. It returns err and what went wrong itself.
func (c *Cluster) Discard(err error) error {
	if err = errors.Join(err, c.Stop()); err != nil {
		return err
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("remove the cluster's folder: %w", err)
	}
	return nil
}

func (c *Cluster) spawn(component string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errors.New("the cluster was stopped: start another")
	}
	started, err := process.Start(process.Spec{
		Name: component, Binary: filepath.Join(c.bin, component), Args: c.args(component), Dir: c.dir,
		// etcd, for one, takes settings from the environment. Memory is not scarce, time is.
		Env:     []string{"HOME=" + c.dir, "PATH=" + os.Getenv("PATH"), "GOGC=300"},
		LogFile: logPath(c.dir, component), Ended: c.close,
	})
	if err != nil {
		return err
	}
	c.processes[component] = started
	return nil
}

func (c *Cluster) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failureLocked()
}

func (c *Cluster) failureLocked() error {
	for _, name := range controlPlane {
		if component := c.processes[name]; component != nil {
			if err := component.Failure(); err != nil {
				return err
			}
		}
	}
	return nil
}
